"""Safe access to files that others may have created: regular files only, without blocking.

Opening a pipe blocks until something is written to it, and reading a device may never end; the reported size reveals
neither.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from grpo_core.errors import GrpoError
from grpo_core.text import tr

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


def opened_regular(path: Path) -> BinaryIO:
    """Open the regular file at ``path`` for reading.

    Raises:
        OSError: it cannot be opened, or it is a folder, a pipe or a device.
        ValueError: the path is not a valid file name.
    """
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, tr("it is not a regular file"), str(path))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read_limited(path: Path, largest: int) -> bytes | None:
    """Read the regular file at ``path``. Return None if it has more than ``largest`` bytes.

    Raises:
        OSError: as for :func:`opened_regular`, or it cannot be read.
    """
    with opened_regular(path) as file:
        content = file.read(largest + 1)
    return None if len(content) > largest else content


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file atomically: ``path`` is replaced once ``content`` is on disk.

    Only the user can read a ``private`` file. Another has the permissions usual in its folder.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the old file is then kept.
    """
    temporary = path.with_name(f".{zlib.crc32(os.fsencode(path.name)):08x}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o600 if private else 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_existing(files: Iterable[Path], force: bool) -> None:
    """Check that all files may be written.

    Raises:
        GrpoError: a file exists and must not be replaced, or is a folder.
    """
    for file in files:
        if file.is_dir():
            raise GrpoError(tr("{file} is a folder; choose the name of a file.").format(file=file))
        if file.exists() and not force:
            raise GrpoError(
                tr("{file} already exists; choose another name, or add --force to replace it.").format(file=file)
            )
