"""Reader of a run file, which uses a read-only connection and never keeps a transaction open between calls."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from contextlib import nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.metrics import METRICS, metrics
from grpo_core.questions import AnyAnswer, AnyQuestion, answer_from_json
from grpo_core.record import Origin, Step
from grpo_core.runs import thinning
from grpo_core.runs.checks import KEY as CHECKS
from grpo_core.runs.checks import is_damaged
from grpo_core.runs.database import CHUNK, RunConnection, explained, newer_version_error, opened, transaction
from grpo_core.runs.files import collapsed, size_of
from grpo_core.runs.layout import decoded
from grpo_core.runs.limits import (
    LONGEST_ANSWER,
    LONGEST_LAYOUT,
    LONGEST_SERIES_NAME,
    LONGEST_SETTINGS,
    MOST_CHANGES,
    MOST_SERIES,
    MOST_UPDATES,
)
from grpo_core.runs.meta import RunMeta, all_rows, meta_from, origin_from, stored_settings, written_by
from grpo_core.runs.series import NAMES, read_series, scalars
from grpo_core.text import plural, tr


class RunReader:
    """A run file opened for reading, possibly while another thread or process writes it. Used by one thread only.

    Every method raises :class:`RunFileError` if the file is damaged; undamaged parts remain readable.

    Attributes:
        first: first update stored in this file; a branch stores those after its branch point.
        last: last committed update, as of opening or :meth:`refresh`.
        newer: whether a newer version of the program wrote the file, which can be read but not continued.
    """

    def __init__(self, path: Path, connection: RunConnection) -> None:
        self.path = path
        self.newer = connection.newer
        self._connection = connection
        self._layouts: dict[int, str] = {}
        self._settings: dict[int, Settings] = {}
        self._computed: dict[int, np.ndarray] = {}
        with explained(path):
            self._rows = all_rows(connection)
        self._sound: set[str] = set()
        if is_damaged(connection, self._rows, "meta"):
            raise RunFileError(self._not_as_written(tr("Its description")))
        self.meta: RunMeta = meta_from(self._rows)
        self.first = self.meta.parent[1] + 1 if self.meta.parent else 1
        self.last = self.first - 1
        self.refresh()

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the run file at ``path``.

        Raises:
            RunFileError: it is missing, empty, truncated, damaged, or not a run file; the message says which.
        """
        path = Path(path)
        connection = opened(path)
        try:
            return cls(path, connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, RunFileError) and connection.newer:
                raise newer_version_error(path) from error
            raise

    def refresh(self) -> int:
        """Check for newly committed updates. Stores and returns the number of the last committed update."""
        with explained(self.path):
            self._connection.limit_values(size_of(self.path))
            newest = self._connection.execute("SELECT max(step) FROM step").fetchone()[0]
        if newest is not None and not self.first <= newest <= MOST_UPDATES:
            raise RunFileError(
                tr("{name} claims to contain update {newest}, which no run has; the file is damaged.").format(
                    name=self.path.name, newest=newest
                )
            )
        self.last = self.last if newest is None else int(newest)
        return self.last

    @cached_property
    def origin(self) -> Origin:
        """The state of the run before its first update."""
        return origin_from(self._rows, self._snapshot(0, "origin"))

    def step(self, number: int) -> Step:
        """Read update ``number``. A branch also contains the update from which it branched.

        Raises:
            RunFileError: it is not in this file, or its record is damaged.
            NotRecordedError: the run was imported from a source without tokens.
        """
        if not 0 <= number <= MOST_UPDATES:
            raise RunFileError(self._absent(number))
        with explained(self.path):
            row = self._connection.execute(
                "SELECT layout, settings, crc, record FROM step WHERE step = ?", (number,)
            ).fetchone()
        if row is None:
            if self.meta.parent is None or number != self.first - 1 or number == 0:
                raise RunFileError(self._absent(number))
            return decoded(*self._snapshot(number, "step"), number, self.settings_at(number))
        layout, settings, crc, record = row
        self._check(record, crc, tr("Update {number}").format(number=number))
        return decoded(self._layout(layout), record, number, self._settings_row(settings))

    @cached_property
    def thinned(self) -> tuple[thinning.Stretch, ...]:
        """The stretches of updates that an earlier version dropped to keep the file below its size limit."""
        return thinning.stretches_from(self._rows)

    def kept(self, number: int, *, forwards: bool = False) -> int | None:
        """Return the nearest update at or before ``number``, or at or after it if ``forwards``.

        None if there is none.
        """
        query = (
            "SELECT min(step) FROM step WHERE step >= ?" if forwards else "SELECT max(step) FROM step WHERE step <= ?"
        )
        with explained(self.path):
            nearest = self._connection.execute(query, (number,)).fetchone()[0]
        return None if nearest is None else int(nearest)

    def answer(self, question: AnyQuestion) -> AnyAnswer | None:
        """Return the model's stored answer. None if the question was not asked."""
        with explained(self.path):
            row = self._connection.execute(
                "SELECT answer FROM answer WHERE step = ? AND question = ? AND length(answer) <= ?",
                (question.step, question.to_json(), LONGEST_ANSWER),
            ).fetchone()
        try:
            if row is not None and self._is_damaged("answer"):
                raise ValueError
            return None if row is None else answer_from_json(question, row[0])
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
            raise RunFileError(
                tr("An answer stored in {name} is damaged; ask again in a copy.").format(name=self.path.name)
            ) from None

    def series(self, name: str, start: int = 0) -> np.ndarray:
        """Return the values of the series ``name`` from index ``start`` on, float64. Index i is update i + 1.

        A series that the program knows but the file lacks is NaN; the file of an imported run lacks all. Values that
        do not match their checksum are recomputed from their updates, or NaN if the file lacks the updates.

        Raises:
            KeyError: there is no such series.
        """
        names = self.series_names
        if name not in names:
            if name not in METRICS:
                raise KeyError(name)
            return np.full_like(self.series(names[0], start), np.nan)  # no more than the file has
        if self.meta.settings.is_recorded:
            return np.full(max(self.last - start, 0), np.nan)
        with explained(self.path), transaction(self._connection, "DEFERRED"):
            try:
                values = read_series(
                    self._connection,
                    names,
                    name,
                    start=start,
                    last=self.last,
                    computed=self._computed_chunk,
                    most=size_of(self.path) // (8 * CHUNK),  # the file's own claim may be wrong
                )
            except (ValueError, TypeError):
                values = np.empty(0)
        if len(values) != max(self.last - start, 0):
            raise RunFileError(
                tr("The series {name} in {name2} is damaged; it can be rebuilt from the updates.").format(
                    name=name, name2=self.path.name
                )
            )
        return values

    def all_series(self, last: int) -> np.ndarray:
        """Return the stored values of all series for updates 1 to ``last``: (series, updates)."""
        return np.stack([self.series(name)[:last] for name in NAMES])

    def rebuilt_series(self) -> np.ndarray:
        """Return the series recomputed from the updates in this file, (series, updates).

        A branch keeps its parent's part, and a thinned run keeps the stored values of the dropped updates.
        """
        if self.thinned:
            whole = self.all_series(self.last)
            number = self.kept(self.first, forwards=True)
            while number is not None:
                whole[:, number - 1] = np.frombuffer(scalars(self.step(number)), "<f8")
                number = self.kept(number + 1, forwards=True)
            return whole
        before = self.all_series(self.first - 1) if self.first > 1 else np.empty((len(NAMES), 0))
        own = [np.frombuffer(scalars(self.step(n)), "<f8") for n in range(self.first, self.last + 1)]
        return np.concatenate([before, np.reshape(own, (len(own), len(NAMES))).T], axis=1)

    def _computed_chunk(self, chunk: int) -> np.ndarray:
        """Return the values of all series in a chunk, recomputed from the updates in the file: (series, CHUNK).

        NaN if the file lacks the update, because it is before the branch point or was dropped by thinning.
        """
        if chunk in self._computed:
            return self._computed[chunk]
        names, before = self.series_names, chunk * CHUNK
        values = np.full((len(names), CHUNK), np.nan)
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT step FROM step WHERE step > ? AND step <= ?", (before, before + CHUNK)
            ).fetchall()
        for (number,) in rows:
            with suppress(RunFileError):  # the update is damaged too
                scalars = metrics(self.step(number))
                values[:, number - before - 1] = [scalars.get(name, np.nan) for name in names]
        self._computed[chunk] = values  # cached, since every series needs it
        return values

    def settings_changes(self) -> list[tuple[int, Settings]]:
        """Return (first update with these settings, settings), in order. The first entry is the run's start."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT id FROM settings ORDER BY id LIMIT ?", (MOST_CHANGES + 1,)
            ).fetchall()
        self._check_table("settings", tr("Its settings"))
        if not 0 < len(rows) <= MOST_CHANGES:
            raise RunFileError(
                plural(
                    "{name} claims that its settings changed {count} time or more; the file is damaged.",
                    "{name} claims that its settings changed {count} times or more; the file is damaged.",
                    len(rows),
                ).format(name=self.path.name, count=len(rows))
            )
        return [(row[0], self._settings_row(row[0])) for row in rows]

    def settings_at(self, step: int) -> Settings:
        """Return the settings of update ``step``, which may be the one after the last."""
        changes = self.settings_changes()
        return changes[max(bisect_right(changes, step, key=lambda change: change[0]) - 1, 0)][1]

    def close(self) -> None:
        """Close the file. When the last reader or writer closes it, its companion files are merged into it."""
        self._connection.close()
        with suppress(RunFileError):
            collapsed(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def series_names(self) -> list[str]:
        """The names of the file's series, in its order.

        Raises:
            RunFileError: the file is damaged.
        """
        try:
            text = self._rows["series"]
            names: object = json.loads(text) if len(text) <= MOST_SERIES * LONGEST_SERIES_NAME else None
        except (KeyError, TypeError, ValueError, RecursionError):
            names = None
        if (
            not isinstance(names, list)
            or not 0 < len(names) <= MOST_SERIES
            or not all(isinstance(name, str) and len(name) <= LONGEST_SERIES_NAME for name in names)
            or is_damaged(self._connection, self._rows, "series")
        ):
            raise RunFileError(tr("{name} does not name its series; the file is damaged.").format(name=self.path.name))
        return names

    def _absent(self, number: int) -> str:
        stretch = thinning.stretch_at(self.thinned, number)
        if stretch is not None:
            return tr("Update {number} was dropped when {name} was thinned out. {kept}").format(
                number=number, name=self.path.name, kept=thinning.stretches_text([stretch])
            )
        if self.first <= number <= self.last:
            sentence = tr("Update {number} is missing in {name}; the file is damaged.")
        elif self.meta.parent and 1 <= number < self.first:
            sentence = tr("Update {number} is before the branch point, in the run that {name} was branched from.")
        elif self.last < self.first:
            sentence = tr("There is no update {number} in {name}; it contains no updates.")
        else:
            sentence = tr("There is no update {number} in {name}; it contains {first} to {last}.")
        return sentence.format(number=number, name=self.path.name, first=self.first, last=self.last)

    def _snapshot(self, step: int, kind: str) -> tuple[str, bytes]:
        with explained(self.path):
            row = self._connection.execute(
                "SELECT layout, crc, record FROM snapshot WHERE step = ? AND kind = ?", (step, kind)
            ).fetchone()
        if row is None:
            raise RunFileError(
                tr("The {kind} stored at update {step} is missing in {name}; the file is damaged.").format(
                    kind=kind, step=step, name=self.path.name
                )
            )
        self._check(row[2], row[1], tr("The {kind} stored at update {step}").format(kind=kind, step=step))
        return self._layout(row[0]), row[2]

    def _check(self, record: object, crc: int, what: str) -> None:
        if not isinstance(record, bytes) or zlib.crc32(record) != crc:
            raise RunFileError(
                tr("{what} in {name} is damaged: the bytes are not those that were written.").format(
                    what=what, name=self.path.name
                )
            )

    def _check_table(self, table: str, what: str) -> None:
        """Check, once, that a table matches its checksum.

        Raises:
            RunFileError: it does not; the message begins with ``what``.
        """
        if table not in self._sound:
            if self._is_damaged(table):
                raise RunFileError(self._not_as_written(what))
            self._sound.add(table)

    def _is_damaged(self, table: str) -> bool:
        one_state = nullcontext() if self._connection.in_transaction else transaction(self._connection, "DEFERRED")
        with explained(self.path), one_state:
            query = "SELECT key, value FROM meta WHERE key = ?"
            return is_damaged(self._connection, dict(self._connection.execute(query, (CHECKS,)).fetchall()), table)

    def _not_as_written(self, what: str) -> str:
        return tr(
            "{name} is damaged. {what}: these are not the bytes that were written. “grpo-lab rebuild” recovers what "
            "it can to another file."
        ).format(name=self.path.name, what=what)

    def _layout(self, number: int) -> str:
        if number not in self._layouts:
            self._check_table("layout", tr("The description of its records"))
            self._layouts[number] = self._text(
                "SELECT fields FROM layout WHERE id = ? AND length(fields) <= ?", number, LONGEST_LAYOUT
            )
        return self._layouts[number]

    def _settings_row(self, number: int) -> Settings:
        if number in self._settings:
            return self._settings[number]
        self._check_table("settings", tr("Its settings"))
        settings = stored_settings(
            self._text("SELECT json FROM settings WHERE id = ? AND length(json) <= ?", number, LONGEST_SETTINGS),
            written_by(self._rows),
        )
        if number <= self.last:  # before its first update a row may still be replaced
            self._settings[number] = settings
        return settings

    def _text(self, query: str, number: int, longest: int) -> str:
        with explained(self.path):
            row = self._connection.execute(query, (number, longest)).fetchone()
        if row is None or not isinstance(row[0], str):
            raise RunFileError(
                tr("A description that updates refer to is missing in {name}; the file is damaged.").format(
                    name=self.path.name
                )
            )
        return row[0]
