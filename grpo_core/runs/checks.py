"""Checksums of a run file's content other than updates: metadata, settings, layouts, texts, answers and notes.

Updates and the values of their series have separate checksums. The checksums here are in one row of the table ``meta``,
which earlier versions ignore. Each covers a stated number of rows of a table, because an earlier version that continues
the file adds rows without updating the checksum.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from grpo_core.metrics import METRICS
from grpo_core.runs.database import RunConnection

KEY = "checks"
_META = ("id", "title", "created", "settings", "seed", "parent", "parent_step", "parent_path", "version", "origin")
"""Metadata that never changes after a run file has been created."""
_TABLES = {
    "layout": "SELECT id, fields FROM layout ORDER BY id",
    "settings": "SELECT id, json FROM settings ORDER BY id",
    "text": "SELECT id, text FROM text ORDER BY id",
    "answer": "SELECT step, question, answer FROM answer ORDER BY rowid",
    "note": "SELECT step, created, text FROM note ORDER BY rowid",
}
CHECKED = ("meta", "series", *_TABLES)
"""Everything that has a checksum: the metadata, the names of the series, and the tables."""
_LONGEST = 10_000
"""Maximum number of characters in the row with the checksums."""
_KNOWN_SERIES = json.dumps(tuple(METRICS))


def note_checks(connection: sqlite3.Connection | RunConnection, *tables: str) -> None:
    """Store the current checksums of ``tables``, by default of all tables, within the caller's transaction."""
    rows = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    kept = _kept(rows) | {name: _checksum(connection, rows, name) for name in tables or CHECKED}
    connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (KEY, json.dumps(kept)))


def is_damaged(connection: sqlite3.Connection | RunConnection, rows: Mapping[str, Any], name: str) -> bool:
    """Return whether an entry of :data:`CHECKED` does not match its checksum. False if it has none.

    Args:
        rows: the table ``meta``; for another table, the row with the checksums is enough.

    Raises:
        sqlite3.Error: the table cannot be read at all.
    """
    kept = _kept(rows).get(name)
    if kept is None or (name == "series" and rows.get("series") == _KNOWN_SERIES):
        return False  # an earlier version may have written its own names
    return _checksum(connection, rows, name, kept[0]) != kept


def covered(rows: Mapping[str, Any]) -> frozenset[str]:
    """Return the names in :data:`CHECKED` that have checksums in the file. Files of earlier versions have none."""
    return frozenset(_kept(rows))


def _kept(rows: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return (number of rows, checksum) by table. A damaged entry is ignored."""
    try:
        found = json.loads(str(rows.get(KEY, "{}"))[:_LONGEST])
        return {name: [int(count), int(crc)] for name, (count, crc) in found.items() if name in CHECKED}
    except (TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _checksum(
    connection: sqlite3.Connection | RunConnection, rows: Mapping[str, Any], name: str, most: int = -1
) -> list[int]:
    """Return (number of rows, checksum) of an entry of :data:`CHECKED`. ``most``: limit on the rows that count."""
    if name == "meta":
        return [0, _crc([key, rows.get(key)] for key in _META)[1]]
    if name == "series":
        return [0, _crc([rows.get("series")])[1]]
    return _crc(connection.execute(f"{_TABLES[name]} LIMIT ?", (most,)))


def _crc(rows: Iterable[object]) -> list[int]:
    count = crc = 0
    for row in rows:
        count, crc = count + 1, zlib.crc32(repr(row).encode("utf-8", "surrogatepass"), crc)
    return [count, crc]
