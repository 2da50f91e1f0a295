"""The SQLite side of a run file: what it looks like inside, how it is opened, and its errors in plain words."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grpo_core.errors import RunFileError
from grpo_core.text import tr

APPLICATION_ID = 0x4752504F  # "GRPO"
VERSION = 1
CHUNK = 4096
"""Values of a series stored together; the newest that do not fill a chunk lie in ``tail``, one row an update."""

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
"""The id of a row of settings is the first update that ran under them."""

_FULL = tr("the disk is full; free some space and go on")
_DAMAGED = tr("the file is damaged or was cut short")
_READ_ONLY = tr("the file or its folder is read-only")
_TOO_LONG = tr("its path is too long; choose a folder nearer to the root of the disk")
_LONGEST_PATH = 500
"""Bytes of a path, the endings of its companions left out, beyond which SQLite opens nothing."""
_REASONS = {
    "ENOSPC": _FULL,
    "EDQUOT": _FULL,
    "SQLITE_FULL": _FULL,
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": _DAMAGED,
    "SQLITE_ERROR": _DAMAGED,  # a table or a column is missing
    "EACCES": _READ_ONLY,
    "EPERM": _READ_ONLY,
    "EROFS": _READ_ONLY,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_CANTOPEN": _READ_ONLY,
    "SQLITE_BUSY": tr("another program is using it"),
    "SQLITE_IOERR": tr("the disk reports an error; perhaps there is no space left on it"),
}


def opened(path: Path, *, writable: bool = False) -> tuple[sqlite3.Connection, int]:
    """A connection to the run file at ``path``, and its ``user_version``; each statement stands for itself until BEGIN.

    Nothing but SQLite ever opens the file: closing another handle on it would drop SQLite's own locks.

    Raises:
        RunFileError: there is no such file, or it is empty, damaged, or not a run file.
    """
    with explained(path):
        if path.is_dir():
            raise RunFileError(tr("{path} is a folder; choose a run file, whose name ends in .grpo.").format(path=path))
        try:
            empty = path.stat().st_size == 0
        except (FileNotFoundError, ValueError):  # the latter: a name that no file can have
            raise RunFileError(tr("There is no run file at {path}.").format(path=path)) from None
    if empty:
        raise RunFileError(tr("{name} is empty; nothing was ever written to it.").format(name=path.name))
    with explained(path, "written" if writable else "read"):
        try:
            connection = _connection(path, "mode=rw") if writable else _read_only(path)
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
                    tr("{name} is a database of another program, not a run file of GRPO Lab.").format(name=path.name)
                )
            return connection, int(connection.execute("PRAGMA user_version").fetchone()[0])
        except BaseException:
            connection.close()
            raise


def _read_only(path: Path) -> sqlite3.Connection:
    try:
        return _connection(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        # A file left in write-ahead mode cannot be opened in a folder that takes no new files, except as a constant.
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise RunFileError(
                tr(
                    "{name} was not closed: its last updates lie in {log}, and they cannot be joined in a "
                    "read-only folder. Copy both files to another folder and open the run there."
                ).format(name=path.name, log=log.name)
            ) from None
        return _connection(path, "immutable=1")


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=2.0, isolation_level=None, cached_statements=32
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # opening is lazy; errors belong here
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def explained(path: Path, doing: str = "read") -> Iterator[None]:
    """Errors of SQLite and of the file system inside the block become one :class:`RunFileError`."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake in our own code
    except UnicodeDecodeError as error:  # damage that reached the text of SQLite's own message
        raise RunFileError(
            tr("{name} cannot be {doing}: {damaged}.").format(name=path.name, doing=doing, damaged=_DAMAGED)
        ) from error
    except (sqlite3.Error, OSError) as error:
        longest = isinstance(error, sqlite3.OperationalError) and len(os.fsencode(path.absolute())) > _LONGEST_PATH
        why = _TOO_LONG if longest else _reason(error)
        raise RunFileError(
            tr("{name} cannot be {doing}: {why}.").format(name=path.name, doing=doing, why=why)
        ) from error


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where the error is the Python module's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _reason(error: sqlite3.Error | OSError) -> str:
    if isinstance(error, OSError):
        name = errno.errorcode.get(error.errno or 0, "")
        return _REASONS.get(name, error.strerror or str(error))
    primary = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])  # SQLITE_IOERR_WRITE -> SQLITE_IOERR
    return _REASONS.get(primary, str(error))


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """All or nothing of the block; DEFERRED for several reads of one state."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk may already have rolled back
            connection.execute("ROLLBACK")
        raise
