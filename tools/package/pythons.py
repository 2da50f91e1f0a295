"""Python installations available on this machine, including those of pyenv."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

MINORS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that wheel and source archive are built for."""
_SAY = "import platform; print(platform.python_implementation(), platform.python_version())"


@cache
def installed() -> dict[str, Path]:
    """Return the newest working patch release of each minor version of CPython, such as
    {"3.11": /usr/bin/python3.11}.
    """
    found: dict[str, tuple[tuple[int, ...], Path]] = {}
    for path in _candidates():
        patch = patch_of(path)
        minor, number = ".".join(patch.split(".")[:2]), _number(patch)
        if number and number > found.get(minor, ((), path))[0]:
            found[minor] = (number, path)
    return {minor: path for minor, (_, path) in sorted(found.items())}


def newer(than: str, here: Mapping[str, Path] | None = None) -> Path | None:
    """Return a Python with a newer patch release of the same minor version, such as 3.11.9 for "3.11.7", or None.

    Args:
        than: a version.
        here: the available installations; by default the result of :func:`installed`.
    """
    found = (installed() if here is None else here).get(".".join(than.split(".")[:2]))
    if found is None or _number(patch_of(found)) <= _number(than):
        return None
    return found


def patch_of(python: Path) -> str:
    """Return the version of a Python, such as "3.11.9". Empty if it does not run, or is not a release of CPython."""
    try:
        done = subprocess.run([python, "-c", _SAY], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = re.fullmatch(r"CPython (\d+\.\d+\.\d+)\s*", done.stdout)
    return said[1] if said and not done.returncode else ""


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _candidates() -> list[Path]:
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    names = [f"python{minor}" for minor in MINORS]
    folders = [*map(Path, os.get_exec_path()), *sorted(versions.glob("*/bin"))]
    return [
        path
        for folder in folders
        for name in names
        if "shims" not in folder.parts and (path := folder / name).is_file()
    ]
