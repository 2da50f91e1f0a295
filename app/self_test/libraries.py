"""The check that every process of a Linux package loads the libraries contained in the package."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import psutil

from app.self_test.report import CheckFailed


def own_libraries() -> str:
    """Check which libraries this process and its children have loaded.

    Raises:
        CheckFailed: a library was loaded from the system although the package contains it.
    """
    package = Path(sys.executable).resolve().parent
    held = [path.name for path in package.rglob("*.so*")]
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    for process in processes:
        foreign = foreign_libraries(Path(f"/proc/{process.pid}/maps").read_text("utf-8"), package, held)
        if foreign:
            name = "the window" if process is processes[0] else "a process of the program"
            raise CheckFailed(f"{name} has loaded {', '.join(foreign)} instead of the package's own")
    return f"{len(processes)} processes load what the package holds from there"


def foreign_libraries(maps: str, package: Path, held: Iterable[str]) -> list[str]:
    """Return the libraries that a process has loaded from outside ``package`` although the package contains them.

    Args:
        maps: the content of ``/proc/PID/maps``.
        package: the folder of the package.
        held: file names of its libraries; the version after ".so" can differ.
    """
    loaded = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "/" in line}
    names = {_unversioned(name) for name in held}
    outside = [path for path in loaded if ".so" in path and not PurePosixPath(path).is_relative_to(package.as_posix())]
    return sorted(path for path in outside if _unversioned(PurePosixPath(path).name) in names)


def _unversioned(name: str) -> str:
    return name.split(".so")[0]
