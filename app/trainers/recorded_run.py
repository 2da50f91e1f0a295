"""A run trained by another program, as opened in the window. It is read in place, never written and never continued."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from app.plotting.pyramid import Pyramid
from app.workspace.cursor import Cursor
from app.workspace.prepared import Prepared, with_pass
from app.workspace.run_handle import RunHandle
from grpo_core.errors import RunFileError
from grpo_core.explain import Numbers
from grpo_core.foreign.line import LateError
from grpo_core.foreign.recording import Completions, Source, or_why_not
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.record import Origin, Step
from grpo_core.text import tr
from grpo_core.trainers import recorded_series, token_text

T = TypeVar("T")
KEPT_TABLES = 8
"""Maximum number of completion tables kept in memory."""
KEPT_PREPARED = 2_000_000
"""Maximum number of tokens in the evaluated updates kept in memory but for the latest, at about 70 bytes each."""


class RecordedRun(RunHandle):
    """A recorded run. Its last update is available immediately; its series grow as they are computed elsewhere.

    Attributes:
        source: the importer's run, replaced by :meth:`take`.
        read_again: number of times an update was reread because it had been only partly written.
        large: whether its updates are so large that they are evaluated in a thread.
        computed: number of updates, counted from the first, whose numbers are in the series.
    """

    def __init__(self, source: Source) -> None:
        origin = Origin(
            settings=source.settings,
            vocabulary=source.vocabulary,
            prompts=(),
            reward_names=source.settings.recorded.reward_names,
        )
        super().__init__(title=source.title, origin=origin, path=source.path)
        self.source = source
        self.saved = True
        self.read_only = tr(
            "This run was trained by another program ({source}): it can be looked at and recomputed, but not "
            "continued, because its model is not here."
        ).format(source=source.settings.recorded.source or tr("unknown"))
        self._tables: OrderedDict[int, Completions | None] = OrderedDict()
        self._numbers: OrderedDict[int, dict[str, float]] = OrderedDict()
        self._prepared: OrderedDict[int, Prepared] = OrderedDict()
        self.large = False
        self._named = bool(origin.vocabulary)
        self._stamps: dict[int, tuple[int, ...]] = {}
        self.read_again = 0
        self.computed = 0
        self._known: set[int] = set()  # updates whose numbers are in the series
        self.series |= {name: Pyramid() for name in recorded_series.ESTIMATES}
        self.take(source)

    def take(self, source: Source) -> None:
        """Replace the source with one that includes what the trainer has written since."""
        for number in range(max(self.head - 1, 1), min(self.head, len(source)) + 1):
            if number in self._stamps and _stamp(source, number) != self._stamps[number]:
                self._forget(number)  # it was only partly written when it was read
        self.source = source
        self.head = len(source)
        self.note = " ".join(source.notes)
        self.version += 1

    def _forget(self, number: int) -> None:
        """Mark an update for rereading, because the trainer has written more of it.

        A large update on screen is left as it is until the cursor leaves it, because reading it would block the window.
        """
        if not self.large:
            for kept in (self.in_memory, self._tables, self._prepared, self._stamps):
                kept.pop(number, None)
        self._numbers.pop(number, None)
        self.computed = min(self.computed, number - 1)
        self._known = {known for known in self._known if known < number}
        self.read_again += 1

    def is_computed(self, number: int) -> bool:
        """Return whether the numbers of an update are in the series, where the last ones can be before others."""
        return number in self._known

    def add_numbers(self, rows: Sequence[Mapping[str, float]], start: int | None = None) -> None:
        """Add the numbers of updates (:func:`grpo_core.trainers.recorded_series.numbers`) to the series.

        Args:
            rows: numbers of consecutive updates.
            start: number of updates before the first of them; by default they follow those already added.
        """
        start = self.computed if start is None else start
        length, end = len(self.series["reward_mean"]), start + len(rows)
        for name in {name for row in rows for name in row} - self.series.keys():
            self.series[name] = Pyramid(np.full(length, np.nan))
        for name, series in self.series.items():
            values = np.array([row.get(name, np.nan) for row in rows], np.float64)
            if start < length:
                series.extend(np.full(max(end - length, 0), np.nan))
                series.overwrite(start, values)
            else:
                series.extend(np.concatenate([np.full(start - length, np.nan), values]))
        if start < length:
            for onsets in self.onsets:
                onsets.begin_anew()
        self._known |= {*range(start + 1, end + 1)}
        while self.computed + 1 in self._known:
            self.computed += 1
        self.version += 1

    def trainer_step(self, position: int) -> int | None:
        """Return the trainer's number for the update at ``position`` (counted from 1), or None if it has none."""
        labels = self.source.labels
        return labels[position - 1] if 1 <= position <= len(labels) else None

    def position(self, label: int) -> int | None:
        return next((place for place, known in enumerate(self.source.labels, 1) if known == label), None)

    def step(self, number: int) -> Step | None:
        if not 1 <= number <= self.head:
            return None
        if number not in self.in_memory:
            self._show(*self._recorded(self.source.step, number))
        return self.in_memory.get(number)

    def _show(self, step: Step | None, why_no_step: str) -> None:
        self.why_no_step = why_no_step
        if step is not None:
            most = int(step.tokens.max(initial=-1)) + 1
            if not self._named and most > len(self.origin.vocabulary):  # no tokenizer: named by number
                self.origin = dataclasses.replace(self.origin, vocabulary=token_text.numbered(most))
            self.keep(step)

    def _recorded(self, read: Callable[[int], T], number: int) -> tuple[T | None, str]:
        """Read a part of an update as :func:`or_why_not` does. If that takes too long, the run is a large one."""

        def stamped(number: int) -> T:
            stamp = self.source.stamp(number)
            part = read(number)
            self._stamps[number] = stamp
            return part

        try:
            return or_why_not(stamped, number)
        except LateError:
            self.large = True
            raise

    def preparation(self, cursor: Cursor) -> Callable[[], object] | None:
        if not self.large or not 1 <= cursor.step <= self.head:
            return None
        known = self._prepared.get(cursor.step)
        if known is not None and known.is_ready(cursor):
            return None
        for number, other in self._prepared.items():
            if number != cursor.step and other.evaluated is not None and 2 * other.tokens > KEPT_PREPARED:
                other.evaluated.release()
        return partial(prepare, self.source, cursor, known)

    def adopt(self, prepared: object) -> None:
        assert isinstance(prepared, Prepared)
        number = prepared.number
        self.large = self.large or prepared.large
        self._stamps[number] = prepared.stamp
        self._prepared[number] = prepared
        self._prepared.move_to_end(number)
        tokens = [kept.tokens for kept in self._prepared.values()]
        while len(self._prepared) > KEPT_TABLES or (len(tokens) > 1 and sum(tokens) > KEPT_PREPARED):
            self._prepared.popitem(last=False)
            tokens.pop(0)
        self._tables[number], self._numbers[number] = prepared.table, prepared.numbers
        _shorten(self._tables)
        _shorten(self._numbers)
        self._show(prepared.step, prepared.why_no_step)

    def prepared(self, number: int) -> Prepared | None:
        return self._prepared.get(number)

    def table(self, number: int) -> Completions | None:
        """Return the completions of update ``number`` as a table, or None if none are recorded.

        Raises:
            RunFileError: its file cannot be read.
        """
        if not 1 <= number <= self.head:
            return None
        if number not in self._tables:
            self._tables[number] = self._recorded(self.source.completions, number)[0]
            _shorten(self._tables)
        return self._tables[number]

    def numbers(self, number: int) -> dict[str, float]:
        """Return the numbers of an update by name, from the series or computed now, none if it cannot be read."""
        if self.is_computed(number):
            return {name: float(series.values[number - 1]) for name, series in self.series.items()}
        if not 1 <= number <= self.head:
            return {}
        if number not in self._numbers:
            try:
                self._numbers[number] = recorded_series.numbers(self.source, number)
            except RunFileError:
                self._numbers[number] = {}
            _shorten(self._numbers)
        return self._numbers[number]

    def answer(self, question: AnyQuestion) -> AnyAnswer | None:
        return None

    def rest(self) -> None:
        """Do nothing, because no learner of this program computes a recorded run."""

    def file_with(self, number: int) -> Path:
        raise RunFileError(self.read_only)


def _stamp(source: Source, number: int) -> tuple[int, ...] | None:
    """Return the stamp of an update, or None if the source has none."""
    try:
        return source.stamp(number)
    except RunFileError:
        return None


def _shorten(kept: OrderedDict[int, Any]) -> None:
    while len(kept) > KEPT_TABLES:
        kept.popitem(last=False)


def prepare(source: Source, cursor: Cursor, known: Prepared | None = None) -> Prepared:
    """Read the update at ``cursor`` and evaluate the pass shown there. ``known`` contains the parts prepared before.

    Raises:
        RunFileError: its file cannot be read.
    """
    prepared = _read(source, cursor.step) if known is None else known
    if prepared.step is None or prepared.evaluated is None:
        return prepared
    passed = cursor.pass_of(prepared.step.passes)
    return with_pass(prepared, prepared.evaluated, passed)


def _read(source: Source, number: int) -> Prepared:
    stamp = source.stamp(number)
    step, why = or_why_not(source.step, number)
    table = or_why_not(source.completions, number)[0]
    evaluated = None if step is None else Numbers(step)
    numbers = recorded_series.numbers_of(table, evaluated, source.reports(number))
    return Prepared(
        number=number,
        stamp=stamp,
        step=step,
        why_no_step=why,
        table=table,
        numbers=numbers,
        evaluated=evaluated,
        reasons={},
    )
