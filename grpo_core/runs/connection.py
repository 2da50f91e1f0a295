"""A connection to a run file that may have been made by anybody: nothing in it runs, and no statement goes on for ever.

The b-trees of a damaged database can lead in circles, and a few kilobytes can stand for more rows than will ever be
read. So each statement has an allowance of processor time; a slow disk costs none of it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PROCESSOR_SECONDS = 2.0
"""What one statement may take; a series of a million updates takes hundredths."""
LONGEST_VALUE = 64_000_000
"""Bytes that a value may have in a file which is smaller than that; otherwise, as many as the file has."""
_NO_LIMIT = 1_000_000_000
"""SQLite's own."""
_LOOK_EVERY = 1000
"""Instructions of SQLite's between two looks at the clock."""


class RunConnection(sqlite3.Connection):
    """A connection on which each statement has its allowance. Used by one thread at a time."""

    _end = 0.0

    def guard(self, size: int) -> None:
        """Switch off what a database can do by itself, and limit what is read.

        Args:
            size: bytes of the file; no value in it can be longer.
        """
        self.set_progress_handler(self._exhausted, _LOOK_EVERY)
        self._renew()
        super().execute("PRAGMA trusted_schema=OFF")
        super().execute("PRAGMA cell_size_check=ON")
        self.limit_values(size)

    def limit_values(self, size: int) -> None:
        """Refuse values longer than a file of ``size`` bytes can hold."""
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(size, LONGEST_VALUE), _NO_LIMIT))

    def allow_writing(self) -> None:
        """Take values of any length, which the file does not have yet."""
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _NO_LIMIT)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._renew()
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        self._renew()
        return super().executemany(sql, parameters)

    def _renew(self) -> None:
        self._end = time.thread_time() + PROCESSOR_SECONDS

    def _exhausted(self) -> bool:
        return time.thread_time() > self._end


def connected(path: Path, mode: str) -> RunConnection:
    """A connection to the database at ``path``. Each statement stands for itself until BEGIN.

    Args:
        path: of the file.
        mode: of SQLite's URI, such as ``mode=ro``.

    Raises:
        sqlite3.Error: it cannot be opened, or is no database.
    """
    size = sum(beside.stat().st_size for beside in (path, path.with_name(path.name + "-wal")) if beside.exists())
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True, timeout=2.0, isolation_level=None, cached_statements=32, factory=RunConnection,
        check_same_thread=False,  # a run is opened beside the window, which then has it
    )  # fmt: skip
    try:
        connection.guard(size)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # opening is lazy; errors belong here
    except BaseException:
        connection.close()
        raise
    return connection
