"""Build a package: ``python -m tools.package slim`` or ``full``.

python -m tools.package slim          build the folder and the archive
python -m tools.package slim folder   build only the folder, to sign its programs before it is packed
python -m tools.package slim pack     pack the existing folder into the archive
python -m tools.package slim check    build only the folder and try it in another place, in a third of the time
python -m tools.package slim trial    build nothing; unpack and try the existing archive
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tools.package import archive, contents, icu_data, licences, pythons, run_paths, sbom, trial
from tools.package.stamp import KINDS, Stamp, stamp

ROOT = Path(__file__).parents[2]
STRIPPED = (
    "libpython*.so*",
    "python*/lib-dynload/*.so",
    "pyarrow/*.so*",
    "psutil/*.so",
    "torch/lib/libtorch_*.so",
    "torch/lib/libc10.so",
)
STEPS = ("folder", "pack", "check", "trial")
DIST, WORK = ROOT / "dist", ROOT / "build" / "package"


def main(arguments: list[str]) -> int:
    """Build the package of the given kind, try it, or try an existing one."""
    kind = arguments[0] if arguments else "slim"
    made = stamp(ROOT, kind)
    if arguments[1:] == ["trial"]:
        return trial.run(archive_of(made))
    if arguments[1:] == ["pack"]:
        return pack(made)
    folder = build(made)
    count = finish(made, folder)
    print(f"{folder.relative_to(ROOT)}: {size(folder) / 1e6:,.0f} MB, licences of {count} parts", flush=True)
    if arguments[1:] == ["check"]:
        newer = pythons.newer(platform.python_version())
        if newer:
            print(f"Python {platform.python_version()} is bundled, and {newer} is a newer patch: set PYTHON to it.")
        return trial.run(folder) or int(newer is not None)
    return 0 if arguments[1:] == ["folder"] else pack(made)


def pack(made: Stamp) -> int:
    """Write the archive of the existing folder, and return the exit status."""
    folder = DIST / made.folder
    if not folder.is_dir():
        raise SystemExit(f"There is no folder {made.folder} in dist; make it first.")
    packed = archive.pack(folder, made.moment)
    print(f"{packed.relative_to(ROOT)}: {packed.stat().st_size / 1e6:,.1f} MB")
    return 0


def build(made: Stamp) -> Path:
    """Run PyInstaller. Return the folder.

    Raises:
        SystemExit: PyInstaller failed, or torch is not the variant that belongs in a package.
    """
    if made.kind == "full":
        _check_torch()
    work = WORK / made.folder
    shutil.rmtree(DIST / made.folder, ignore_errors=True)
    environment = os.environ | {
        "GRPO_LAB_KIND": made.kind,
        "PYTHONHASHSEED": "0",  # the order of sets determines the order in the archives
        "PYINSTALLER_ZLIB_COMPRESSION_LEVEL": "0",  # the archive packs the modules better
        "SOURCE_DATE_EPOCH": str(made.moment),
    }
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level", "ERROR"]
    command += ["--distpath", str(DIST), "--workpath", str(work), str(ROOT / "build.spec")]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"PyInstaller failed with exit status {done.returncode}.")
    return DIST / made.folder


def finish(made: Stamp, folder: Path) -> int:
    """Strip the libraries, and add everything that is not part of the program: licences, bill of materials, first
    steps, desktop entries. Return the number of licences.
    """
    strip(folder)
    if sys.platform == "linux":
        for tables in (folder / "_internal").glob("PySide6/Qt/lib/libicudata.so.*"):
            print(f"{tables.name}: {icu_data.trim(tables) / 1e6:,.0f} MB of tables that Qt never opens.", flush=True)
        run_paths.forget(folder / "_internal" / "pyarrow", contents.UNUSED_OF_PYARROW)
        print(f"{run_paths.remove_absolute_run_paths(folder)} libraries named folders of this machine.", flush=True)
    bundle = DIST / "GRPO Lab.app"
    if sys.platform == "darwin" and bundle.exists():  # it contains everything in the folder
        shutil.rmtree(folder)
        folder.mkdir()
        bundle.rename(folder / bundle.name)
    extras = ROOT / "package_recipes" / {"linux": "linux", "darwin": "macos", "win32": "windows"}[sys.platform]
    shutil.copyfile(ROOT / "package_recipes" / "FIRST-STEPS.txt", folder / "FIRST-STEPS.txt")
    if extras.is_dir():
        shutil.copytree(extras, folder, dirs_exist_ok=True)
    work = WORK / made.folder / "build"  # PyInstaller adds the name of the recipe
    found = json.loads((work / "found.json").read_text("utf-8"))
    modules = [*found["modules"], "PyInstaller"]  # its start program is built from the package
    parts = licences.parts_of(ROOT, folder, modules, [Path(name) for name in found["libraries"]])
    licences.write(ROOT, folder, parts)
    shutil.copyfile(sbom.write(made, parts, folder), DIST / f"{made.folder}.cdx.json")
    return len(parts)


def strip(folder: Path) -> None:
    """Remove debug information and local names from the libraries that :data:`STRIPPED` names.

    The others are left unchanged: libraries in wheels that were patched after linking do not survive stripping.
    """
    if sys.platform != "linux" or shutil.which("strip") is None:
        return
    inner = folder / "_internal"
    for path in (path for pattern in STRIPPED for path in inner.glob(pattern)):
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)


def archive_of(made: Stamp) -> Path:
    """Return the existing archive of the package.

    Raises:
        SystemExit: there is none.
    """
    found = [path for suffix in (".tar.xz", ".zip") if (path := DIST / f"{made.folder}{suffix}").is_file()]
    if not found:
        raise SystemExit(f"There is no archive {made.folder} in dist; make it first.")
    return found[0]


def size(folder: Path) -> int:
    """Return the total size in bytes of all files in ``folder``."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _check_torch() -> None:
    if find_spec("torch") is None:
        raise SystemExit("The full package needs torch; `make package-full` installs it.")
    command = [sys.executable, "-c", "import torch; print(torch.version.cuda or '')"]
    cuda = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if cuda:
        raise SystemExit(
            f"The torch that is installed is for CUDA {cuda}: the package would be several GB. Install the CPU build "
            "(package_recipes/README.md says how) and try again."
        )


if __name__ == "__main__":
    if (sys.argv[1:2] and sys.argv[1] not in KINDS) or sys.argv[2:] not in ([], *([one] for one in STEPS)):
        sys.exit(f"Usage: python -m tools.package [{' | '.join(KINDS)}] [{' | '.join(STEPS)}]")
    sys.exit(main(sys.argv[1:]))
