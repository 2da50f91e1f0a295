"""The SQLite level of a run file: its tables, a hardened connection, opening it, and error messages.

A database of unknown origin is also a program: a view can be an endless query, a trigger runs when a row is written, a
virtual table calls code, and a generated column computes values. A run file only has plain tables, so anything else in
it is rejected before its first table is read, and no code in the file is run.

The b-trees of a damaged database can be circular, and a few kilobytes can represent more rows than can ever be read.
Therefore each statement has a limit on processor time, which does not include waiting for a slow disk.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from grpo_core.errors import RunFileError
from grpo_core.text import tr

APPLICATION_ID = 0x4752504F  # "GRPO"
VERSION = 1
CHUNK = 4096
"""Number of values of a series stored together.

The newest values, which do not yet fill a chunk, are in the table ``tail``, which has one row per update.
"""

COMPANIONS = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite stores next to a database."""

_FULL = tr("the disk is full; free some space to continue")
_NO_MORE_FILES = tr("the disk cannot hold any more files (its inodes are used up); delete some to continue")
_DAMAGED = tr("the file is damaged or was cut short")
_READ_ONLY = tr("the file or its folder is read-only")
_TOO_LONG = tr("its path is too long; choose a folder closer to the root of the disk")
_LONGEST_PATH = 500
"""Maximum length of a path in bytes, without the suffixes of companion files, that SQLite can open."""
_NO_HANDLE = tr("the program has as many files open as the system allows")
_REASONS = {
    "EMFILE": _NO_HANDLE,
    "ENFILE": _NO_HANDLE,
    "ENOSPC": _FULL,
    "EDQUOT": _FULL,
    "SQLITE_FULL": _FULL,
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": _DAMAGED,
    "SQLITE_ERROR": _DAMAGED,  # a table or a column is missing
    "SQLITE_CONSTRAINT": _DAMAGED,
    "SQLITE_MISMATCH": _DAMAGED,
    "SQLITE_TOOBIG": _DAMAGED,
    "SQLITE_INTERRUPT": tr("reading it takes far too long; no file written by GRPO Lab takes that long"),
    "SQLITE_NOMEM": tr("there is not enough memory"),
    "ENOMEM": tr("there is not enough memory"),
    "EACCES": _READ_ONLY,
    "EPERM": _READ_ONLY,
    "EROFS": _READ_ONLY,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_CANTOPEN": _READ_ONLY,
    "SQLITE_BUSY": tr("another program is using it"),
    "SQLITE_LOCKED": tr("another program is using it"),
    "SQLITE_PROTOCOL": tr("another program is using it"),
    "SQLITE_IOERR": tr("the disk reports an error; it may be full"),
}

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE layout(id INTEGER PRIMARY KEY, fields TEXT NOT NULL UNIQUE);
CREATE TABLE settings(id INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE step(step INTEGER PRIMARY KEY, layout INTEGER NOT NULL, settings INTEGER NOT NULL, crc INTEGER NOT NULL,
                  record BLOB NOT NULL);
CREATE TABLE series(name TEXT NOT NULL, chunk INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(name, chunk));
CREATE TABLE tail(step INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE text(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE snapshot(step INTEGER NOT NULL, kind TEXT NOT NULL, layout INTEGER, crc INTEGER NOT NULL,
                      record BLOB NOT NULL, PRIMARY KEY(step, kind));
CREATE TABLE answer(step INTEGER NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL, PRIMARY KEY(step, question));
CREATE TABLE note(step INTEGER NOT NULL, created REAL NOT NULL, text TEXT NOT NULL);
"""
"""The tables of a run file. The id of a row of settings is the number of the first update with these settings."""

TABLES = {
    statement.split("(")[0].removeprefix("CREATE TABLE "): statement
    for statement in map(str.strip, SCHEMA.split(";"))
    if statement
}
"""Name of a table -> the statement that creates it, as SQLite stores it in the file."""

_MOST_OBJECTS = 100
_PLAIN_TABLE = re.compile(r"CREATE TABLE \w+\s?\([\w\s,()]*\)[\w\s,]*", re.ASCII)
_COMPUTES = re.compile(r"\b(as|check|generated|default|collate|references|foreign)\b", re.ASCII | re.IGNORECASE)

PROCESSOR_SECONDS = 2.0
"""Processor time, in seconds, allowed for one statement. A series of a million updates takes a few hundredths of a
second.
"""
LONGEST_VALUE = 64_000_000
"""Maximum size in bytes of a value in a small file. In a larger file, the limit is the file's size."""
_NO_LIMIT = 1_000_000_000
"""SQLite's own limit on the size of a value in bytes."""
_LOOK_EVERY = 1000
"""Number of SQLite instructions between two checks of the time."""


class RunConnection(sqlite3.Connection):
    """A connection with a time limit for each statement. Used by one thread at a time.

    Attributes:
        newer: whether a newer version of the program wrote the file.
    """

    newer = False
    _end = 0.0

    def guard(self, size: int) -> None:
        """Disable features that let a database run code, and limit values to the ``size`` of the file in bytes."""
        self.set_progress_handler(lambda: time.thread_time() > self._end, _LOOK_EVERY)
        self.execute("PRAGMA trusted_schema=OFF")
        self.execute("PRAGMA cell_size_check=ON")
        self.limit_values(size)

    def limit_values(self, size: int) -> None:
        """Reject values longer than a file of ``size`` bytes can hold."""
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(size, LONGEST_VALUE), _NO_LIMIT))

    def allow_writing(self) -> None:
        """Remove the limit on the size of values, for writing."""
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _NO_LIMIT)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._renew()
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        self._renew()
        return super().executemany(sql, parameters)

    def _renew(self) -> None:
        self._end = time.thread_time() + PROCESSOR_SECONDS


def connected(path: Path, mode: str) -> RunConnection:
    """Connect to the database at ``path`` in autocommit mode. ``mode`` is that of SQLite's URI, such as ``mode=ro``.

    Raises:
        sqlite3.Error: it cannot be opened, or is not a database.
    """
    size = sum(beside.stat().st_size for beside in (path, path.with_name(path.name + "-wal")) if beside.exists())
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=2.0,
        isolation_level=None,
        cached_statements=32,
        factory=RunConnection,
        check_same_thread=False,  # a run is opened in another thread and then passed to the window
    )
    try:
        connection.guard(size)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # opening is lazy; errors belong here
    except BaseException:
        connection.close()
        raise
    return connection


def opened(path: Path, *, writable: bool = False) -> RunConnection:
    """Open the run file at ``path`` and check its tables.

    Only SQLite ever opens the file: if other code opened and closed it, SQLite's locks would be released.

    Raises:
        RunFileError: there is no such file, or it is empty, damaged, a device, or not a run file.
    """
    size = _size_of_file(path)
    may_grow = path.with_name(path.name + "-wal").exists()
    with explained(path, "written" if writable else "read"):
        try:
            connection = connected(path, "mode=rw") if writable else _read_only(path)
        except sqlite3.DatabaseError as error:
            if _code(error) != sqlite3.SQLITE_NOTADB:
                raise
            raise RunFileError(
                tr("{name} is not a run file; run files are written by GRPO Lab and end in .grpo.").format(
                    name=path.name
                )
            ) from None
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            if application != APPLICATION_ID:
                raise RunFileError(
                    tr("{name} is another program's database, not a run file of GRPO Lab.").format(name=path.name)
                )
            connection.newer = connection.execute("PRAGMA user_version").fetchone()[0] > VERSION
            try:
                check_schema(connection, path.name, newer=connection.newer)
            except RunFileError as error:
                if connection.newer:
                    raise newer_version_error(path) from error
                raise
            if not may_grow and size % connection.execute("PRAGMA page_size").fetchone()[0]:
                # SQLite detects missing pages, but reads the missing part of the last one as zeros
                raise RunFileError(CANNOT["read"].format(name=path.name, why=_DAMAGED))
            return connection
        except BaseException:
            connection.close()
            raise


def _size_of_file(path: Path) -> int:
    """Check the file at ``path`` before it is opened, and return its size in bytes.

    Raises:
        RunFileError: it does not exist, is empty, a folder or a device, or there is a device next to it.
    """
    with explained(path):
        if path.is_dir():
            raise RunFileError(tr("{path} is a folder; choose a run file, whose name ends in .grpo.").format(path=path))
        try:
            status = path.stat()
        except (FileNotFoundError, ValueError):  # ValueError: an invalid file name
            raise RunFileError(tr("There is no run file at {path}.").format(path=path)) from None
        for beside in (path, *(path.with_name(path.name + ending) for ending in COMPANIONS)):
            if beside.exists() and not beside.is_file():  # opening a pipe would block
                raise RunFileError(
                    tr("{name} is a device or a pipe; a run must be a regular file.").format(name=beside.name)
                )
    if status.st_size == 0:
        raise RunFileError(tr("{name} is empty; nothing was ever written to it.").format(name=path.name))
    return status.st_size


def newer_version_error(path: Path) -> RunFileError:
    """Return the error about a run file that only a newer version of the program can read."""
    return RunFileError(
        tr("{name} was written by a newer version of GRPO Lab and cannot be read; update the program.").format(
            name=path.name
        )
    )


def _read_only(path: Path) -> RunConnection:
    try:
        return connected(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        # A file left in write-ahead mode cannot be opened in a folder that accepts no new files, except as immutable.
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise RunFileError(
                tr(
                    "{name} was not closed: its last updates are in {log}, and the two cannot be merged in a "
                    "read-only folder. Copy both files to another folder and open the run there."
                ).format(name=path.name, log=log.name)
            ) from None
        return connected(path, "immutable=1")


CANNOT = {"read": tr("{name} cannot be read: {why}."), "written": tr("{name} cannot be written: {why}.")}
"""Error messages about a file, by the operation that failed."""


@contextmanager
def explained(path: Path, doing: str = "read") -> Iterator[None]:
    """Convert errors of SQLite and the file system into :class:`RunFileError`, as a context manager.

    Args:
        doing: the operation, a key of :data:`CANNOT`.
    """
    sentence = CANNOT[doing]
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a bug in our own code
    except (UnicodeDecodeError, OverflowError) as error:
        # damage that affected SQLite's own message, or a number that SQLite does not define
        raise RunFileError(sentence.format(name=path.name, why=_DAMAGED)) from error
    except MemoryError as error:
        raise RunFileError(sentence.format(name=path.name, why=_REASONS["ENOMEM"])) from error
    except (sqlite3.Error, OSError) as error:
        longest = isinstance(error, sqlite3.OperationalError) and len(os.fsencode(path.absolute())) > _LONGEST_PATH
        raise RunFileError(
            sentence.format(name=path.name, why=_TOO_LONG if longest else _reason(path, error))
        ) from error


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, or 0 if the error comes from the Python module itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _reason(path: Path, error: sqlite3.Error | OSError) -> str:
    if _takes_no_file(path, error):
        return _NO_MORE_FILES
    if isinstance(error, sqlite3.Error) and _code(error) == sqlite3.SQLITE_CANTOPEN and _no_handle_is_left():
        return _NO_HANDLE  # SQLite does not report why it cannot open a file
    if isinstance(error, OSError):
        name = errno.errorcode.get(error.errno or 0, "")
        return _REASONS.get(name, error.strerror or str(error))
    name = getattr(error, "sqlite_errorname", "")
    if not name:  # the Python module's own, for example about a string that is not UTF-8, which it repeats
        return _DAMAGED
    return _REASONS.get("_".join(name.split("_")[:2]), str(error))  # SQLITE_IOERR_WRITE -> SQLITE_IOERR


def _takes_no_file(path: Path, error: sqlite3.Error | OSError) -> bool:
    """Return whether the cause of ``error`` is a file system that still has space but cannot create another file."""
    full = error.errno == errno.ENOSPC if isinstance(error, OSError) else _code(error) == sqlite3.SQLITE_CANTOPEN
    if not full or not hasattr(os, "statvfs"):
        return False
    with suppress(OSError):
        status = os.statvfs(path.parent)
        return status.f_files > 0 and status.f_ffree == 0
    return False


def _no_handle_is_left() -> bool:
    """Return whether this process cannot open another file because it has reached a limit of the system."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Run the block as a transaction: all of it or nothing. Use DEFERRED for several reads of one state."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk may already have rolled back
            connection.execute("ROLLBACK")
        raise


def check_schema(connection: sqlite3.Connection, name: str, *, newer: bool = False) -> None:
    """Reject a database that contains anything other than the tables of a run.

    Args:
        connection: connection to a database of which nothing else has been read.
        newer: whether the file declares that it is from a newer version of the program; it can then have more tables
            and columns, provided that they are plain.

    Raises:
        RunFileError: the database has a view, trigger, virtual table or index that no run file has, or a table is
            missing or has the wrong columns.
    """
    objects = connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT ?", (_MOST_OBJECTS + 1,)).fetchall()
    if len(objects) > _MOST_OBJECTS:
        raise RunFileError(
            tr("{name} contains more tables than any run file; it was not written by GRPO Lab.").format(name=name)
        )
    present = {}
    for kind, called, sql in objects:
        if kind == "index" and sql is None and str(called).startswith("sqlite_autoindex_"):
            continue  # SQLite's own, for a primary key
        known = called in TABLES if not newer else isinstance(sql, str) and _is_plain(sql)
        if kind != "table" or not known:
            raise RunFileError(
                tr(
                    "{name} contains something that no run file has ({kind} “{object}”); it was not written by GRPO "
                    "Lab and was not opened."
                ).format(name=name, kind=str(kind)[:40], object=str(called)[:40])
            )
        present[called] = sql
    for table, statement in TABLES.items():
        if table not in present or not (newer or present[table] == statement):
            raise RunFileError(
                tr("{name} cannot be read: its table “{table}” is not like that of a run; the file is damaged.").format(
                    name=name, table=table
                )
            )


def _is_plain(sql: str) -> bool:
    """Return whether a statement creates a table and declares only columns with types."""
    return len(sql) < 10_000 and _PLAIN_TABLE.fullmatch(sql) is not None and _COMPUTES.search(sql) is None
