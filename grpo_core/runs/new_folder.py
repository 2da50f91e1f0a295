"""Atomic creation of a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_core.errors import RunFileError
from grpo_core.runs.database import explained
from grpo_core.runs.files import PART
from grpo_core.text import tr


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Provide a temporary folder that is renamed to ``path`` on success and deleted on failure.

    Raises:
        RunFileError: the path already exists, the disk is full, or the folder cannot be written.
    """
    path = path.absolute()
    if os.path.lexists(path):
        raise RunFileError(tr("{path} already exists; choose another name.").format(path=path))
    if not path.parent.is_dir():
        raise RunFileError(tr("There is no folder {parent}; choose one that exists.").format(parent=path.parent))
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}{PART}")
    try:
        with explained(path, "written"):
            shutil.rmtree(temporary, ignore_errors=True)  # left by a killed process with the same number
            temporary.mkdir()
            yield temporary
            if os.path.lexists(path):
                raise RunFileError(tr("{path} was created in the meantime; choose another name.").format(path=path))
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def require_space_for(path: Path, size: float) -> None:
    """Check that about ``size`` bytes fit into the folder that will contain ``path``.

    Raises:
        RunFileError: there is not enough space.
    """
    with explained(path, "written"):
        free = shutil.disk_usage(path.absolute().parent).free if path.absolute().parent.is_dir() else float("inf")
    if free < size:
        raise RunFileError(
            tr("{name} needs {size:.2g} GB, but {free:.2g} GB are free there; choose another disk.").format(
                name=path.name, size=size / 1e9, free=free / 1e9
            )
        )
