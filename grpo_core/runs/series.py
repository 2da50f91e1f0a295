"""The scalar series of a run file: full chunks with checksums, and one row per update for the newest values.

For each chunk number, the same table has a row named :data:`CHECKSUMS` with one checksum per series. Older files have
chunks without checksums, which are read unverified.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.metrics import METRICS, metrics
from grpo_core.record import Step
from grpo_core.runs.database import CHUNK
from grpo_core.text import tr

NAMES = tuple(METRICS)
"""The series that this version writes, in the order of a row of ``tail``."""
NAMES_JSON = json.dumps(NAMES)
CHECKSUMS = "checksums"
"""Value of the column of series names in rows that hold the checksums of chunks.

Each of these rows holds the checksums of all chunks with one number, in the order of the series' names.
"""
NEWEST = "checksums of the newest"
"""Value of the column of series names in rows that hold the checksums of rows of the table ``tail``.

There is one row for each commit, with the number of its last update instead of a chunk's.
"""


def scalars(step: Step, values: Mapping[str, float] | None = None) -> bytes:
    """Return one row of ``tail``: the metrics of ``step`` as float64. Pass ``values`` if they are already computed."""
    if values is None:
        values = metrics(step)
    return np.array([values[name] for name in NAMES], "<f8").tobytes()


def append(connection: sqlite3.Connection, rows: Sequence[tuple[int, bytes]]) -> None:
    """Append the newest values, ``rows`` of (update, :func:`scalars`) in order, with their checksums."""
    connection.executemany("INSERT INTO tail(step, data) VALUES (?, ?)", rows)
    if rows:
        values = np.frombuffer(b"".join(data for _, data in rows), "<f8").reshape(len(rows), -1)
        sums = checksums(values).astype("<u8").tobytes()
        connection.execute(
            "INSERT OR REPLACE INTO series(name, chunk, data) VALUES (?, ?, ?)", (NEWEST, rows[-1][0], sums)
        )


def fold(connection: sqlite3.Connection, last: int) -> None:
    """Move each full chunk of updates up to ``last`` out of the tail."""
    begin: int | None = connection.execute("SELECT min(step) FROM tail").fetchone()[0]
    while begin is not None and last >= begin + CHUNK - 1:
        end = begin + CHUNK - 1
        steps, table, damaged = newest(connection, len(NAMES), begin - 1, end)
        if len(steps) != CHUNK or damaged.any():
            raise RunFileError(tr("The newest values of the run's series are damaged; they can be rebuilt in a copy."))
        insert_chunk(connection, NAMES, (begin - 1) // CHUNK, table.T)
        connection.execute("DELETE FROM tail WHERE step BETWEEN ? AND ?", (begin, end))
        connection.execute("DELETE FROM series WHERE name = ? AND chunk <= ?", (NEWEST, end))
        begin = end + 1


def store(connection: sqlite3.Connection, values: np.ndarray) -> None:
    """Replace all series with ``values`` (series, updates), which begin with update 1."""
    connection.execute("DELETE FROM series")
    connection.execute("DELETE FROM tail")
    full = values.shape[1] // CHUNK
    for chunk in range(full):
        insert_chunk(connection, NAMES, chunk, values[:, chunk * CHUNK : (chunk + 1) * CHUNK])
    rest = np.ascontiguousarray(values[:, full * CHUNK :].T, "<f8")
    append(connection, [(full * CHUNK + i + 1, row.tobytes()) for i, row in enumerate(rest)])


def insert_chunk(connection: sqlite3.Connection, names: Sequence[str], chunk: int, values: np.ndarray) -> None:
    """Store a chunk of the series ``names``, ``values`` (series, CHUNK), with their checksums."""
    rows = [(name, chunk, np.ascontiguousarray(row, "<f8").tobytes()) for name, row in zip(names, values, strict=True)]
    rows.append((CHECKSUMS, chunk, checksums(values).astype("<u8").tobytes()))
    connection.executemany("INSERT OR REPLACE INTO series(name, chunk, data) VALUES (?, ?, ?)", rows)


def checksums(values: np.ndarray) -> np.ndarray:
    """Return the sum of each chunk's values, interpreted as 64-bit words, modulo 2**64.

    (..., CHUNK) float64 -> (...) uint64. Unlike a CRC, it takes only a fraction of the time of reading the values. It
    detects any change to a single word.
    """
    summed: np.ndarray = np.ascontiguousarray(values, np.float64).view(np.uint64).sum(axis=-1, dtype=np.uint64)
    return summed


def newest(
    connection: sqlite3.Connection, series: int, start: int, last: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the newest values, those not yet in a chunk, after update ``start`` up to update ``last``.

    Args:
        connection: connection in a transaction.
        start: number of an update, whose values are not included.
        last: number of an update, whose values are included.

    Returns:
        (updates,) their numbers, the last of which is ``last``; (updates, series) float64, NaN in a row of unexpected
        length; (updates,) bool, whether they do not match their checksum, if there is one, or have another number.
    """
    rows = connection.execute(
        "SELECT step, data FROM tail WHERE step > ? AND step <= ? ORDER BY step LIMIT ?", (start, last, CHUNK)
    ).fetchall()
    steps = np.arange(last - len(rows) + 1, last + 1)
    whole = [isinstance(data, bytes) and len(data) == 8 * series for _, data in rows]
    gap = np.full(series, np.nan).tobytes()
    pieces = (data if good else gap for (_, data), good in zip(rows, whole, strict=True))
    values = np.frombuffer(b"".join(pieces), "<f8").reshape(len(rows), series)
    written = dict(zip(steps.tolist(), checksums(values).tolist(), strict=True))
    kept = dict(written)
    for end, data in connection.execute("SELECT chunk, data FROM series WHERE name = ? AND chunk > ?", (NEWEST, start)):
        sums = np.frombuffer(data, "<u8") if isinstance(data, bytes) and not len(data) % 8 else np.empty(0, "<u8")
        kept.update(zip(range(end - len(sums) + 1, end + 1), sums.tolist(), strict=True))
    damaged = [
        not good or number != step or kept[step] != written[step]
        for step, (number, _), good in zip(steps.tolist(), rows, whole, strict=True)
    ]
    return steps, values, np.array(damaged, bool)


def read_series(
    connection: sqlite3.Connection,
    names: Sequence[str],
    name: str,
    *,
    start: int,
    last: int,
    most: int,
    computed: Callable[[int], np.ndarray],
) -> np.ndarray:
    """Return the values of series ``name`` after update ``start`` up to ``last``, (at most last - start,) float64.

    There are fewer if a chunk or one of the newest values is missing.

    Args:
        connection: connection in a transaction, because all data read must belong to the same state.
        names: names of the file's series, in its order.
        start: number of an update; values begin with the next one.
        most: maximum number of full chunks that the file can have.
        computed: function that returns the values (series, CHUNK) to use for a damaged chunk, given its number.

    Raises:
        sqlite3.Error: the file cannot be read.
        ValueError, TypeError: one of the newest values is damaged.
    """
    first = start // CHUNK
    values, count = _full_chunks(connection, name, first, max(min(last // CHUNK, most) - first + 1, 0))
    for chunk in _damaged(connection, values[:count], names.index(name), len(names), first):
        values[(chunk - first) * CHUNK : (chunk - first + 1) * CHUNK] = computed(chunk)[names.index(name)]
    steps, table, damaged_rows = newest(connection, len(names), start, last)
    tail = table[:, names.index(name)]
    if damaged_rows.any():
        tail = tail.copy()
        for place in np.flatnonzero(damaged_rows):
            chunk, within = divmod(int(steps[place]) - 1, CHUNK)
            tail[place] = computed(chunk)[names.index(name), within]
    end = count + len(steps)
    if end > len(values):
        values = np.concatenate([values[:count], tail])
    values[count:end] = tail
    return values[start - first * CHUNK if count else 0 : end][: max(last - start, 0)]


def _full_chunks(connection: sqlite3.Connection, name: str, first: int, most: int) -> tuple[np.ndarray, int]:
    """Read consecutive chunks of a series from number ``first`` on, up to the first one that is not full.

    Returns:
        An array with capacity for ``most`` chunks, and the number of values in it.
    """
    rows = connection.execute(
        "SELECT data FROM series WHERE name = ? AND chunk >= ? ORDER BY chunk LIMIT ?", (name, first, most)
    )
    values, count = np.empty(0), 0
    for (data,) in rows:
        if not isinstance(data, bytes) or len(data) != 8 * CHUNK:
            break
        if not count:
            values = np.empty(most * CHUNK)
        values[count : count + CHUNK] = np.frombuffer(data, "<f8")
        count += CHUNK
    return values, count


def _damaged(connection: sqlite3.Connection, values: np.ndarray, place: int, series: int, first: int) -> Iterator[int]:
    """Yield the numbers of the chunks whose values do not match their checksum, if they have one.

    Args:
        values: (chunks * CHUNK,) of one series, as read.
    """
    sums = checksums(values.reshape(-1, CHUNK))
    rows = connection.execute(
        "SELECT chunk, data FROM series WHERE name = ? AND chunk >= ? AND chunk < ?",
        (CHECKSUMS, first, first + len(sums)),
    ).fetchall()
    for chunk, data in rows:
        whole = isinstance(data, bytes) and len(data) == 8 * series
        if not whole or np.frombuffer(data, "<u8")[place] != sums[chunk - first]:
            yield chunk


def count_values(connection: sqlite3.Connection, names: Sequence[str], *, last: int, most: int) -> tuple[int, int, int]:
    """Count the values of all series up to update ``last``.

    Args:
        connection: connection in a transaction.
        names: names of the file's series, in its order.
        most: maximum number of full chunks that the file can have.

    Returns:
        (number of values, number that do not match their checksum, number without a checksum).
    """
    count = damaged = unchecked = whole = 0
    sums = {row[0] for row in connection.execute("SELECT chunk FROM series WHERE name = ?", (CHECKSUMS,))}
    for place, name in enumerate(names):
        values, whole = _full_chunks(connection, name, 0, min(last // CHUNK, most))
        count += whole
        damaged += CHUNK * sum(1 for _ in _damaged(connection, values[:whole], place, len(names), 0))
        unchecked += CHUNK * sum(chunk not in sums for chunk in range(whole // CHUNK))
    steps, _, bad = newest(connection, len(names), whole, last)
    covered = set[int]()
    for end, data in connection.execute("SELECT chunk, data FROM series WHERE name = ?", (NEWEST,)):
        covered.update(range(end - len(data) // 8 + 1, end + 1) if isinstance(data, bytes) else ())
    loose = sum(step not in covered for step in steps.tolist())
    each = len(names)
    return count + each * len(steps), damaged + each * int(bad.sum()), unchecked + each * loose
