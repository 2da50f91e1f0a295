"""Checksums of a run file's content other than updates: metadata, settings, layouts, texts, answers and notes.

Updates and the values of their series have separate checksums. The checksums here are in one row of the table ``meta``,
which earlier versions ignore. Each covers a stated number of rows of a table, because an earlier version that continues
the file adds rows without updating the checksum.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
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
    kept = _kept(rows)
    for name in tables or CHECKED:
        if name == "meta":
            kept[name] = [0, _of_meta(rows)]
        elif name == "series":
            kept[name] = [0, _crc([rows.get("series")])]
        else:
            found = connection.execute(_TABLES[name]).fetchall()
            kept[name] = [len(found), _crc(found)]
    text = json.dumps(kept)
    connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (KEY, text))


def damaged_meta(rows: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the metadata, or of the series' names, that do not match their checksums."""
    kept = _kept(rows)
    found = {"meta": _of_meta(rows), "series": _crc([rows.get("series")])}
    if rows.get("series") == _KNOWN_SERIES:  # an earlier version may have written its own names
        found.pop("series")
    return tuple(name for name, crc in found.items() if name in kept and kept[name][1] != crc)


def is_damaged(connection: sqlite3.Connection | RunConnection, rows: Mapping[str, Any], table: str) -> bool:
    """Return whether one of the tables in :data:`CHECKED` does not match its checksum. False if it has none.

    Raises:
        sqlite3.Error: the table cannot be read at all.
    """
    if table not in (kept := _kept(rows)):
        return False
    count, crc = kept[table]
    there = 0

    def rows_there() -> Iterator[object]:
        nonlocal there
        for row in connection.execute(f"{_TABLES[table]} LIMIT ?", (count,)):
            there += 1
            yield row

    return _crc(rows_there()) != crc or there != count


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


def _of_meta(rows: Mapping[str, Any]) -> int:
    return _crc([key, rows.get(key)] for key in _META)


def _crc(rows: Iterable[object]) -> int:
    crc = 0
    for row in rows:
        crc = zlib.crc32(repr(row).encode("utf-8", "surrogatepass"), crc)
    return crc
