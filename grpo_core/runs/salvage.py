"""Recovery of a damaged run file, or of one that another program truncated while it was being written.

The open handle of a truncated file can still read the part before the cut, the content of SQLite's log next to the
file, and the pages in memory. Updates are recovered in order, up to the first unreadable one that was not dropped by
thinning, because only a run without other gaps can be continued.

A damaged update of a bandit is recomputed from the previous one. The result is only accepted if it leads, bit for bit,
to an update with a matching checksum, which proves that it equals the lost one.
"""

from __future__ import annotations

import sqlite3
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.record import Step
from grpo_core.runs import series, thinning
from grpo_core.runs.checks import KEY as CHECKS
from grpo_core.runs.checks import note_checks
from grpo_core.runs.database import APPLICATION_ID, CHUNK, SCHEMA, VERSION, explained, opened, transaction
from grpo_core.runs.files import locked, replacing
from grpo_core.runs.layout import decoded, encoded, layout_id
from grpo_core.runs.meta import all_rows, meta_from, stored_settings, written_by
from grpo_core.runs.reader import RunReader
from grpo_core.runs.thinning import Stretch
from grpo_core.text import tr

MOST_AGAIN = 1000
"""Maximum number of consecutive updates that are recomputed."""
_COLUMNS = {
    "layout": "id, fields",
    "settings": "id, json",
    "snapshot": "step, kind, layout, crc, record",
    "answer": "step, question, answer",
    "note": "step, created, text",
    "text": "id, text",
    "series": "name, chunk, data",
    "tail": "step, data",
}
"""Tables from which as many rows as possible are recovered, and their columns."""
_UNKNOWN = np.full(len(series.NAMES), np.nan, "<f8").tobytes()
"""The values of all series, as a row of the table ``tail``, for an update of which nothing is left: NaN."""
_CUT_BELOW = 1e-300
"""Magnitude below which a number may have been cut off in the middle.

SQLite reads the missing bytes as 0. Since the last byte holds most of a number's exponent, a number without it is
smaller than this.
"""


Row: TypeAlias = tuple[int, int, int, int, bytes]
"""An update as a row of the table ``step``: (number, layout, settings, checksum, record)."""


def rebuilt_run(source: Path, target: Path, poll: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """Recover the run file ``source`` to ``target``: its updates, with its series recomputed.

    Return the last update in ``target``, and the number of updates that were recomputed.

    Args:
        source: a run file that is not being written.
        target: path of the new file, which atomically replaces an existing one.
        poll: called for each recomputed update; may raise to stop.

    Raises:
        RunFileError: nothing can be recovered, or ``target`` cannot be written.
    """
    if target.exists() and target.samefile(source):
        raise RunFileError(tr("{name} cannot be rebuilt in place; choose another name.").format(name=target.name))
    with closing(opened(source)) as damaged, locked(target), replacing(target) as temporary:
        return salvage(damaged, source.name, temporary, poll)


def salvage(
    damaged: sqlite3.Connection, name: str, target: Path, poll: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """Recover what ``damaged`` can still read into a new run file, like :func:`rebuilt_run`.

    Args:
        damaged: the connection that was writing when the file was truncated, or one to a damaged file.
        target: path of the new file, which must not exist.

    Raises:
        RunFileError: no update can be read, or ``target`` cannot be written.
    """
    with explained(target, "written"):
        damaged.execute("PRAGMA writable_schema=ON")  # otherwise SQLite refuses a file that lacks pages altogether
        meta = all_rows(damaged)
        stretches = thinning.stretches_from(meta)
        first = int(meta.get("parent_step") or 0) + 1
        imported = meta_from(meta).settings.is_recorded
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            copy.execute(f"PRAGMA application_id={APPLICATION_ID}")
            copy.execute(f"PRAGMA user_version={VERSION}")
            copy.executescript(SCHEMA)
            with transaction(copy):
                kept = {key: value for key, value in meta.items() if key != CHECKS}  # they are recreated at the end
                copy.executemany("INSERT INTO meta(key, value) VALUES (?, ?)", (kept | {"ended": 1}).items())
                for table, columns in _COLUMNS.items():
                    places = ", ".join("?" * len(columns.split(",")))
                    insert = f"INSERT OR IGNORE INTO {table}({columns}) VALUES ({places})"
                    # a page that was cut in two holds empty rows, which are skipped
                    copy.executemany(insert, _readable(damaged, f"SELECT {columns} FROM {table}"))
                replay = _Replay(damaged, copy, written_by(meta), poll)
                texts = {row[0] for row in copy.execute("SELECT id FROM text")} if imported else None
                copy.executemany(
                    "INSERT INTO step(step, layout, settings, crc, record) VALUES (?, ?, ?, ?, ?)",
                    replay.updates(first, stretches, texts),
                )
                last = copy.execute("SELECT max(step) FROM step").fetchone()[0]
                if last is None:
                    raise RunFileError(tr("None of the updates in {name} can be read.").format(name=name))
                copy.execute("DELETE FROM settings WHERE id > ?", (last + 1,))
                if stretches:
                    thinning.note(copy, stretches, last)
                if imported:  # its file has no series
                    note_checks(copy)
    if not imported:
        _make_series_whole(target)
    with RunReader.open(target) as reader:  # everything that a window reads when it opens the run
        _ = reader.origin, reader.settings_changes()
        with suppress(NotRecordedError):
            reader.step(reader.last)
        return reader.last, replay.count


class _Replay:
    """Reads the updates of a damaged file, and recomputes those that are lost.

    Attributes:
        layouts: layouts of the new file, by number.
        count: number of updates that were recomputed and verified.
    """

    def __init__(
        self, damaged: sqlite3.Connection, copy: sqlite3.Connection, version: str, poll: Callable[[], None]
    ) -> None:
        self.count = 0
        self.layouts: dict[int, str] = dict(copy.execute("SELECT id, fields FROM layout"))
        self._damaged, self._copy, self._poll = damaged, copy, poll
        self._settings: list[tuple[int, Settings]] = []
        self._known = set[int]()
        for first, text in copy.execute("SELECT id, json FROM settings ORDER BY id"):
            self._known.add(first)
            with suppress(GrpoError, TypeError):
                self._settings.append((first, stored_settings(text, version)))

    def updates(self, first: int, stretches: Sequence[Stretch], texts: set[int] | None) -> Iterator[Row]:
        """Yield the rows of the updates from ``first`` on, up to the first that cannot be recovered.

        This is the first that is damaged, was not dropped by thinning, and cannot be recomputed, or the first without a
        text in an imported run, where ``texts`` contains the numbers of those that have one.
        """
        number, before = first, None
        while True:
            query = f"SELECT step, layout, settings, crc, record FROM step WHERE step = {number}"
            row = next(_readable(self._damaged, query), None) if texts is None or number in texts else None
            if row is not None and row[1] in self.layouts and row[2] in self._known and _is_whole(*row[3:]):
                rows = [row]
            elif not (rows := self._recomputed(number, before)) and not thinning.may_be_dropped(stretches, number):
                return
            for before in rows:
                yield before
            number += max(len(rows), 1)

    def _recomputed(self, number: int, before: Row | None) -> list[Row]:
        """Recompute the rows from update ``number`` up to the next update with a checksum.

        The latter is included unless its record is intact. The result is empty if recomputing is not possible or the
        result cannot be verified. ``before`` is the row of the previous update, None for the first.
        """
        following = self._next_sum(number)
        known = self._settings and not self._settings[0][1].is_language
        if following is None or not known or (before is None and number > 1):
            return []
        last, crc, whole = following
        try:
            steps = self._computed(number, last, before)
        except GrpoError:
            return []
        if zlib.crc32(encoded(steps[-1])[1]) != crc:
            return []
        wanted = steps[:-1] if whole else steps
        self.count += len(wanted)
        return [self._row(step) for step in wanted]

    def _next_sum(self, number: int) -> tuple[int, int, bool] | None:
        """Find the first update from ``number`` on that has a checksum.

        Returns (update, checksum, whether its record matches the checksum).
        """
        left, last = None, number + MOST_AGAIN
        query = f"SELECT step, crc, record FROM step WHERE step BETWEEN {number} AND {last} ORDER BY step"
        for step, crc, record in _readable(self._damaged, query):
            if _is_whole(crc, record):
                return step, crc, True
            if isinstance(crc, int):
                left = step, crc, False
        return left

    def _at(self, number: int) -> tuple[int, Settings]:
        return self._settings[max(bisect_right(self._settings, number, key=lambda row: row[0]) - 1, 0)]

    def _computed(self, number: int, last: int, before: Row | None) -> list[Step]:
        resume = None
        if before is not None:
            resume = decoded(self.layouts[before[1]], before[4], before[0], self._at(before[0])[1])
        from grpo_core.learners import learner  # the learners are not needed to write a run

        training = learner(self._at(number)[1], resume=resume)
        steps = []
        for step in range(number, last + 1):
            self._poll()
            training.settings = self._at(step)[1]
            steps.append(next(training))
        return steps

    def _row(self, step: Step) -> Row:
        fields, record = encoded(step)
        layout, _ = layout_id(self._copy, fields)
        self.layouts[layout] = fields
        return step.step, layout, self._at(step.step)[0], zlib.crc32(record), record


def _is_whole(crc: object, record: object) -> bool:
    return isinstance(record, bytes) and zlib.crc32(record) == crc


def _readable(damaged: sqlite3.Connection, query: str) -> Iterator[Any]:
    """Yield the rows of a query up to the first unreadable one."""
    with suppress(sqlite3.Error):
        yield from damaged.execute(query)


def _make_series_whole(target: Path) -> None:
    """Complete the series up to the last update.

    Chunks with matching checksums are unchanged. All other values are recomputed from the updates, which also have
    checksums. Values of a parent's updates, which are not in this file, and of updates dropped by thinning are kept as
    read. Values that cannot be read become NaN, a gap in the curves, as do those that may have been cut in two
    (:func:`uncut`).
    """
    with explained(target, "written"), closing(sqlite3.connect(target, isolation_level=None)) as copy:
        stored = _stored_chunks(copy)
        whole = 0
        while whole in stored and np.array_equal(series.checksums(stored[whole][0]), stored[whole][1]):
            whole += 1
        with RunReader.open(target) as reader:
            last = reader.last
            whole = min(whole, last // CHUNK)
            there = {step for (step,) in copy.execute("SELECT step FROM step")}
            read = dict(copy.execute("SELECT step, data FROM tail WHERE length(data) = ?", (len(_UNKNOWN),)))
            for chunk, (values, _) in stored.items():
                read |= {chunk * CHUNK + n + 1: row.tobytes() for n, row in enumerate(values.T) if chunk >= whole}
            computed = [
                (number, series.scalars(reader.step(number)) if number in there else uncut(read.get(number, _UNKNOWN)))
                for number in range(whole * CHUNK + 1, last + 1)
            ]
        with transaction(copy):
            copy.execute("DELETE FROM series WHERE chunk >= ? OR name = ?", (whole, series.NEWEST))
            copy.execute("DELETE FROM tail")
            series.append(copy, computed)
            series.fold(copy, last)
            note_checks(copy)
    with RunReader.open(target) as reader:
        reader.all_series(last)


def _stored_chunks(copy: sqlite3.Connection) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the complete chunks that exist for every series.

    The result maps a chunk's number to its values (series, CHUNK), and its checksums, if the file has them.
    """
    rows = {
        (name, chunk): data
        for name, chunk, data in copy.execute("SELECT name, chunk, data FROM series")
        if len(data) == 8 * (len(series.NAMES) if name == series.CHECKSUMS else CHUNK)
    }
    stored = {}
    for chunk in sorted({chunk for _, chunk in rows}):
        values = [np.frombuffer(rows[name, chunk], "<f8") for name in series.NAMES if (name, chunk) in rows]
        if len(values) == len(series.NAMES):
            stored[chunk] = np.stack(values), np.frombuffer(rows.get((series.CHECKSUMS, chunk), b""), "<u8")
    return stored


def uncut(row: bytes) -> bytes:
    """Return the values of all series at one update, with NaN for each number that may have been cut.

    The values are read from pages that may be missing or cut in two. A cut number cannot be distinguished from 0, so
    both are omitted.
    """
    values = np.frombuffer(row, "<f8")
    return np.where(np.abs(values) < _CUT_BELOW, np.nan, values).astype("<f8").tobytes()
