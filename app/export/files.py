"""Where exports may go, and how they get there."""

from __future__ import annotations

from pathlib import Path

from app.settings.files import reason, write_atomically
from grpo_core.errors import GrpoError


def refuse_existing(files: list[Path], force: bool) -> None:
    """Nothing, if all files may be written.

    Raises:
        GrpoError: one exists and is not to be replaced, or is a folder.
    """
    for file in files:
        if file.is_dir():
            raise GrpoError(f"{file} is a folder; choose the name of a file.")
        if file.exists() and not force:
            raise GrpoError(f"{file} exists already; choose another name, or add --force to replace it.")


def write(path: Path, data: bytes) -> None:
    """Write a whole file, or leave the old one.

    Raises:
        GrpoError: the system refuses; the sentence says why.
    """
    try:
        write_atomically(path, data)
    except OSError as error:
        raise GrpoError(f"{path} cannot be written: {reason(error)}.") from None
