"""The files of a run on disk: who may write them, how they become one file, how a file takes another's place.

While a run is written its file is in write-ahead mode and has ``-wal`` and ``-shm`` files beside it; closing collapses
them into the one file that people copy and send. The writer holds ``<name>.lock`` beside it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import RunFileError
from grpo_core.runs.database import explained, opened
from grpo_core.text import tr

if TYPE_CHECKING:
    from filelock import BaseFileLock


PART = ".part"
"""What the name of a file ends in that is not whole yet."""
LEFT_BEHIND = 3600
"""Seconds without a change after which a temporary file is one that a killed process has left."""


class InUseError(RunFileError):
    """Somebody else writes the run file."""


def lock_path(path: Path) -> Path:
    """The file whose lock says that somebody writes ``path``."""
    return path.with_name(path.name + ".lock")


def lock(path: Path, patience: float = 0.2) -> BaseFileLock:
    """The writer's lock of ``path``, taken. ``patience`` in seconds outlasts a look from another window.

    Raises:
        InUseError: somebody else holds it.
        RunFileError: the folder takes no new files.
    """
    import filelock

    if not path.parent.is_dir():
        raise RunFileError(tr("There is no folder {parent}; choose one that exists.").format(parent=path.parent))
    file_lock = filelock.FileLock(lock_path(path), timeout=patience, thread_local=False)
    with explained(path, "written"):
        try:
            file_lock.acquire()
        except filelock.Timeout:
            raise InUseError(
                tr("{name} is being written by another window; it can be opened for reading, or as a copy.").format(
                    name=path.name
                )
            ) from None
    return file_lock


def release(held: BaseFileLock) -> None:
    """Gives the lock back and leaves no lock file behind."""
    with suppress(OSError):  # unlinked while held: whoever waits for the old one notices and takes the new one
        Path(held.lock_file).unlink()
    held.release()


def in_use(path: Path) -> bool:
    """Whether a writer has ``path`` open, in this process or another."""
    if not lock_path(path).exists():
        return False
    try:
        file_lock = lock(path, patience=0)
    except InUseError:
        return True
    except RunFileError:  # a lock that was left in a folder which cannot be written: nobody writes there
        return False
    release(file_lock)
    return False


def files_of(path: Path) -> list[Path]:
    """The file itself and what SQLite keeps beside it while it is open, as far as they exist."""
    names = (path.name, path.name + "-wal", path.name + "-shm")
    return [beside for name in names if (beside := path.with_name(name)).exists()]


def size_of(path: Path) -> int:
    """Bytes on disk, write-ahead log included."""
    total = 0
    for name in (path.name, path.name + "-wal"):
        with suppress(OSError):
            total += path.with_name(name).stat().st_size
    return total


def collapsed(path: Path) -> bool:
    """Whether ``path`` is one whole file now: folds the write-ahead log in unless somebody still has it open.

    Raises:
        RunFileError: somebody writes the file, or it cannot be written.
    """
    if not path.with_name(path.name + "-wal").exists():
        return True
    file_lock = lock(path, patience=0)
    try:
        return folded(path)
    finally:
        release(file_lock)


def folded(path: Path) -> bool:
    """As :func:`collapsed`, for whoever holds the lock already."""
    connection, _ = opened(path, writable=True)
    try:
        connection.execute("PRAGMA busy_timeout=0")
        return bool(connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0] == "delete")
    except sqlite3.Error:
        with suppress(sqlite3.Error):  # a reader is in the way: the log stays, and is empty
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return False
    finally:
        connection.close()


def clear_left_behind(folder: Path) -> None:
    """Deletes the temporary files of this program in ``folder`` whose processes were killed while they wrote them."""
    with suppress(OSError):
        for file in folder.glob(f".????????.*{PART}*"):
            if _TEMPORARY.fullmatch(file.name) and time.time() - file.stat().st_mtime > LEFT_BEHIND:
                file.unlink()


_TEMPORARY = re.compile(rf"\.[0-9a-f]{{8}}\.\d+{re.escape(PART)}(-wal|-shm|-journal)?", re.ASCII)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well, and vanishes when it does not.

    Raises:
        RunFileError: the folder cannot be written, or the disk is full.
    """
    # a short name: one that is as long as the file system allows leaves no room for an ending
    temporary = path.with_name(f".{zlib.crc32(os.fsencode(path.name)):08x}.{os.getpid()}{PART}")
    try:
        with explained(path, "written"):
            clear_left_behind(path.parent)
            temporary.unlink(missing_ok=True)
            yield temporary
            take_place(temporary, path)
    finally:
        for left in files_of(temporary):
            left.unlink()
        temporary.with_name(temporary.name + "-journal").unlink(missing_ok=True)


def take_place(new: Path, path: Path) -> None:
    """The closed file ``new`` takes the place of ``path``. At every moment one of the two is there, whole."""
    for beside in files_of(path)[1:]:  # a log of the replaced file would be read into the new one
        beside.unlink()
    new.replace(path)
