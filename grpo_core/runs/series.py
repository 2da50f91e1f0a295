"""The scalar series of a run file: chunks of each series, and one row per update for the newest values."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.metrics import METRICS, metrics
from grpo_core.record import Step
from grpo_core.runs.database import CHUNK
from grpo_core.runs.reader import RunReader
from grpo_core.runs.series_chunks import NEWEST, chunk_rows, newest, newest_row
from grpo_core.text import tr

NAMES = tuple(METRICS)
"""The series that this version writes, in the order of a row of ``tail``."""
NAMES_JSON = json.dumps(NAMES)


def scalars(step: Step, values: Mapping[str, float] | None = None) -> bytes:
    """Return one row of ``tail``: the metrics of ``step`` as float64. Pass ``values`` if they are already computed."""
    if values is None:
        values = metrics(step)
    return np.array([values[name] for name in NAMES], "<f8").tobytes()


def append(connection: sqlite3.Connection, rows: Sequence[tuple[int, bytes]]) -> None:
    """Append the newest values, ``rows`` of (update, :func:`scalars`) in order, with their checksums."""
    connection.executemany("INSERT INTO tail(step, data) VALUES (?, ?)", rows)
    if rows:
        connection.execute("INSERT OR REPLACE INTO series(name, chunk, data) VALUES (?, ?, ?)", newest_row(rows))


def fold(connection: sqlite3.Connection, last: int) -> None:
    """Move each full chunk of updates up to ``last`` out of the tail."""
    begin: int | None = connection.execute("SELECT min(step) FROM tail").fetchone()[0]
    while begin is not None and last >= begin + CHUNK - 1:
        end = begin + CHUNK - 1
        steps, table, damaged = newest(connection, len(NAMES), begin - 1, end)
        if len(steps) != CHUNK or damaged.any():
            raise RunFileError(tr("The newest values of the run's series are damaged; they can be rebuilt in a copy."))
        _insert_chunk(connection, (begin - 1) // CHUNK, table.T)
        connection.execute("DELETE FROM tail WHERE step BETWEEN ? AND ?", (begin, end))
        connection.execute("DELETE FROM series WHERE name = ? AND chunk <= ?", (NEWEST, end))
        begin = end + 1


def store(connection: sqlite3.Connection, values: np.ndarray) -> None:
    """Replace all series with ``values`` (series, updates), which begin with update 1."""
    connection.execute("DELETE FROM series")
    connection.execute("DELETE FROM tail")
    full = values.shape[1] // CHUNK
    for chunk in range(full):
        _insert_chunk(connection, chunk, values[:, chunk * CHUNK : (chunk + 1) * CHUNK])
    rest = np.ascontiguousarray(values[:, full * CHUNK :].T, "<f8")
    append(connection, [(full * CHUNK + i + 1, row.tobytes()) for i, row in enumerate(rest)])


def recorded(reader: RunReader, last: int, names: Sequence[str] = NAMES) -> np.ndarray:
    """Return the stored values of ``names`` for updates 1 to ``last``: (series, updates)."""
    return np.stack([reader.series(name)[:last] for name in names])


def rebuilt(reader: RunReader) -> np.ndarray:
    """Return the series recomputed from the updates in this file, (series, updates).

    A branch keeps its parent's part, and a thinned run keeps the stored values of the dropped updates.
    """
    if reader.thinned:
        whole = recorded(reader, reader.last)
        number = reader.kept(reader.first, forwards=True)
        while number is not None:
            whole[:, number - 1] = np.frombuffer(scalars(reader.step(number)), "<f8")
            number = reader.kept(number + 1, forwards=True)
        return whole
    before = recorded(reader, reader.first - 1) if reader.first > 1 else np.empty((len(NAMES), 0))
    own = [np.frombuffer(scalars(reader.step(n)), "<f8") for n in range(reader.first, reader.last + 1)]
    return np.concatenate([before, np.reshape(own, (len(own), len(NAMES))).T], axis=1)


def _insert_chunk(connection: sqlite3.Connection, chunk: int, values: np.ndarray) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO series(name, chunk, data) VALUES (?, ?, ?)", chunk_rows(NAMES, chunk, values)
    )
