"""Paths of runs in files with several runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def file_and_run(path: Path) -> tuple[Path, str]:
    """Split a path such as ``project.db/a-run`` into the file and the name of a run in it, else empty."""
    with suppress(OSError, ValueError):  # names that a file cannot have
        if path.parent.is_file():
            return path.parent, path.name
    return path, ""
