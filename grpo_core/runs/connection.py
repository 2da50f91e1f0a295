"""A hardened connection to a run file of unknown origin: no code in the file is run, and statements have a time limit.

The b-trees of a damaged database can be circular, and a few kilobytes can represent more rows than can ever be read.
Therefore each statement has a limit on processor time, which does not include waiting for a slow disk.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
    """A connection with a time limit for each statement. Used by one thread at a time."""

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
