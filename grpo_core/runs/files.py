"""The files of a run on disk: their locks, merging into one file, and atomic replacement.

While a run is written, its file is in write-ahead mode and has ``-wal`` and ``-shm`` files next to it. Closing merges
them into a single file, which can be copied and sent. The writer holds ``<name>.lock`` next to it.
"""

from __future__ import annotations

import os
import re
import shutil
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
"""Suffix of the name of an incomplete file."""
LEFT_BEHIND = 3600
"""Number of seconds without a change after which a temporary file counts as left behind by a killed process."""


class InUseError(RunFileError):
    """Raised if another process or window is writing the run file."""


def lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def lock(path: Path, patience: float = 0.2) -> BaseFileLock:
    """Acquire the writer's lock of ``path``. The default ``patience``, in seconds, outlasts a check by another window.

    Raises:
        InUseError: another writer holds it.
        RunFileError: no new file can be created in the folder.
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
    """Release the lock and delete its file."""
    with suppress(OSError):  # deleted while held: a process waiting for the old one notices and takes the new one
        Path(held.lock_file).unlink()
    held.release()


@contextmanager
def locked(path: Path, patience: float = 0.2) -> Iterator[None]:
    """Hold the writer's lock of ``path`` during the block. For the errors see :func:`lock`."""
    held = lock(path, patience)
    try:
        yield
    finally:
        release(held)


def in_use(path: Path) -> bool:
    """Return whether a writer, in this process or another, has ``path`` open."""
    if not lock_path(path).exists():
        return False
    try:
        with locked(path, patience=0):
            return False
    except InUseError:
        return True
    except RunFileError:  # a lock file left in a read-only folder, to which nobody writes
        return False


def files_of(path: Path) -> list[Path]:
    """Return the file and SQLite's companion files, if any."""
    names = (path.name, path.name + "-wal", path.name + "-shm")
    return [beside for name in names if (beside := path.with_name(name)).exists()]


def size_of(path: Path) -> int:
    """Return the size on disk in bytes, including the write-ahead log."""
    total = 0
    for name in (path.name, path.name + "-wal"):
        with suppress(OSError):
            total += path.with_name(name).stat().st_size
    return total


def collapsed(path: Path) -> bool:
    """Merge the write-ahead log into ``path`` unless it is open elsewhere. Return whether it is now a single file.

    Raises:
        RunFileError: the file is being written, or cannot be written.
    """
    if not path.with_name(path.name + "-wal").exists():
        return True
    with locked(path, patience=0):
        return folded(path)


def folded(path: Path) -> bool:
    """Merge the write-ahead log like :func:`collapsed`, for callers that hold the lock."""
    connection = opened(path, writable=True)
    try:
        connection.execute("PRAGMA busy_timeout=0")
        return bool(connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0] == "delete")
    except sqlite3.Error:
        with suppress(sqlite3.Error):  # a reader prevents it: the log remains, but is empty
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return False
    finally:
        connection.close()


def clear_left_behind(folder: Path) -> None:
    """Delete this program's temporary files in ``folder`` that killed processes have left behind."""
    with suppress(OSError):
        for file in folder.glob(f".????????.*{PART}*"):
            if _TEMPORARY.fullmatch(file.name) and time.time() - file.stat().st_mtime > LEFT_BEHIND:
                file.unlink()


_TEMPORARY = re.compile(rf"\.[0-9a-f]{{8}}\.\d+{re.escape(PART)}(-wal|-shm|-journal)?", re.ASCII)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide a temporary path next to ``path`` that replaces it on success and is deleted on failure.

    Raises:
        RunFileError: the folder cannot be written, or the disk is full.
    """
    # a short name: one of the maximum length would leave no space for a suffix
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
    """Atomically replace ``path`` with the closed file ``new``."""
    for beside in files_of(path)[1:]:  # a log of the replaced file would be applied to the new one
        beside.unlink()
    new.replace(path)


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
