"""Atomic writing of files: whatever happens, a file has either its old or its new content."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_core.errors import GrpoError
from grpo_core.regular_file import write_whole
from grpo_core.text import tr

_REASONS = {
    errno.ENOSPC: tr("the disk is full"),
    errno.EDQUOT: tr("the disk quota is used up"),
    errno.EFBIG: tr("the file would be larger than the system allows"),
    errno.EROFS: tr("the folder is read-only"),
    errno.EACCES: tr("the program is not allowed to use the folder"),
    errno.EPERM: tr("the program is not allowed to use the folder"),
    errno.ENOENT: tr("the folder does not exist"),
    errno.ENOTDIR: tr("part of the path is a file, not a folder"),
    errno.EEXIST: tr("a file with that name already exists"),
    errno.EISDIR: tr("a folder with that name already exists"),
}


def reason(error: OSError) -> str:
    """Return the reason for a system error, in plain words without a full stop."""
    return _REASONS.get(error.errno or 0, error.strerror or tr("the system refused"))


def exists(path: str | Path) -> bool:
    """Return whether a file or folder exists. The result is False for an invalid name."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the content of ``path`` with ``data``, or leave it unchanged on failure. Only the user can read the file.

    Raises:
        OSError: the folder cannot be written, or the disk is full; no temporary file is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data, private=True)


def write_or_say(
    path: Path, data: bytes, what: str, write: Callable[[Path, bytes], None] = write_atomically
) -> str | None:
    """Write a file with ``write``, and return an error message about ``what``, or None on success.

    A file for others is written with :func:`grpo_core.regular_file.write_whole`, with the permissions of its folder.
    """
    try:
        write(path, data)
    except OSError as error:
        return tr("{what} could not be saved in {parent}: {error}.").format(
            what=what, parent=path.parent, error=reason(error)
        )
    return None


def write(path: Path, data: bytes) -> None:
    """Write an exported file as a whole, with the permissions usual in its folder.

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
