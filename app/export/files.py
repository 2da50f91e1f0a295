"""Atomic writes of exported files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.settings.files import reason
from grpo_core.errors import GrpoError
from grpo_core.regular_file import write_whole
from grpo_core.text import tr


def write(path: Path, data: bytes) -> None:
    """Write a complete file, or leave the old one in place.

    The file has the permissions usual in its folder. Settings and notes, in contrast, are written by
    :func:`app.settings.files.write_atomically` and are readable only by the user.

    Raises:
        GrpoError: the file cannot be written; the message says why.
    """
    with refusals(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Raise an error of the system as a :class:`GrpoError` that says why ``path`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise GrpoError(tr("{path} cannot be written: {error}.").format(path=path, error=reason(error))) from None
