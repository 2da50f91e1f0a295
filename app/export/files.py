"""Target files of exports, and their atomic writing."""

from __future__ import annotations

from pathlib import Path

from app.settings.files import reason
from grpo_core.errors import GrpoError
from grpo_core.regular_file import write_whole
from grpo_core.text import tr


def refuse_existing(files: list[Path], force: bool) -> None:
    """Check that all files may be written.

    Raises:
        GrpoError: one exists and is not to be replaced, or is a folder.
    """
    for file in files:
        if file.is_dir():
            raise GrpoError(tr("{file} is a folder; choose the name of a file.").format(file=file))
        if file.exists() and not force:
            raise GrpoError(
                tr("{file} exists already; choose another name, or add --force to replace it.").format(file=file)
            )


def write(path: Path, data: bytes) -> None:
    """Write a whole file, or leave the old one. It has the permissions usual in its folder, whereas settings and notes,
    written by :func:`app.settings.files.write_atomically`, are readable only by the user.

    Raises:
        GrpoError: the system refuses, for the reason in the message.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except OSError as error:
        raise GrpoError(tr("{path} cannot be written: {error}.").format(path=path, error=reason(error))) from None
