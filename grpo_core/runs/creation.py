"""Creation of a run file: its tables and metadata, and for a branch the data copied from its parent."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from grpo_core.config import Settings
from grpo_core.record import Origin, Step
from grpo_core.runs import series
from grpo_core.runs.checks import note_checks
from grpo_core.runs.database import APPLICATION_ID, TABLES, VERSION, transaction
from grpo_core.runs.layout import encoded, layout_id
from grpo_core.runs.meta import RunMeta, meta_rows, origin_record, raise_needs
from grpo_core.runs.reader import RunReader


def build(
    path: Path, meta: RunMeta, origin: Origin, parent: tuple[RunReader, int] | None, resumed: Step | None = None
) -> None:
    """Create a complete, closed run file without updates of its own.

    This takes a single transaction, because each one waits for the disk. ``resumed`` is the update at the branch point,
    to be stored in the file if its weights differ from those in the parent.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        with transaction(connection):
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={VERSION}")
            for statement in TABLES.values():
                connection.execute(statement)
            rows = meta_rows(meta, origin) | {"series": series.NAMES_JSON}
            connection.executemany("INSERT INTO meta(key, value) VALUES (?, ?)", rows.items())
            _insert_snapshot(connection, 0, "origin", *origin_record(origin))
            _insert_settings(connection, meta.settings, parent)
            if parent is not None and parent[1]:
                reader, point = parent
                series.store(connection, reader.all_series(point))
                _insert_snapshot(connection, point, "step", *encoded(resumed or reader.step(point)))
            note_checks(connection)
    finally:
        connection.close()


def _insert_settings(connection: sqlite3.Connection, settings: Settings, parent: tuple[RunReader, int] | None) -> None:
    reader, point = parent or (None, 0)
    rows = [] if reader is None else [row for row in reader.settings_changes() if row[0] <= point]
    if not rows or rows[-1][1] != settings:
        rows.append((point + 1, settings))
    connection.executemany(
        "INSERT INTO settings(id, json) VALUES (?, ?)", [(first, changed.stored()) for first, changed in rows]
    )
    raise_needs(connection, *(changed.needs for _, changed in rows))


def _insert_snapshot(connection: sqlite3.Connection, step: int, kind: str, layout: str, record: bytes) -> None:
    connection.execute(
        "INSERT INTO snapshot(step, kind, layout, crc, record) VALUES (?, ?, ?, ?, ?)",
        (step, kind, layout_id(connection, layout)[0], zlib.crc32(record), record),
    )
