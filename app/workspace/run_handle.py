"""An open run: its scalars in memory, and its steps on disk or, until they are written, in the worker's buffer."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.examples import RECORDED, TITLES, is_example
from app.jobs.runner import Poll
from app.plotting.pyramid import Pyramid
from app.workspace.cursor import Cursor
from app.workspace.onsets import Onsets, changes, rises_past
from app.workspace.prepared import Prepared
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.metrics import METRICS
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.record import Origin, Step
from grpo_core.runs.files import in_use
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.runs.thinning import Stretch, stretch_at
from grpo_core.text import plural, tr
from grpo_core.update_time import UpdateTime

KEPT_STEPS = 64
"""Maximum number of decoded steps kept in memory."""
KEPT_TOKENS = 4_000_000
"""Maximum total number of tokens in the steps kept in memory, at about 100 bytes per token.

The latest step is kept even if it is larger.
"""


class RunHandle:
    """A run that is open in the window.

    Attributes:
        id: unique among the runs of a window.
        origin: the run before its first update.
        resolved: the path with links resolved, so that two names of the same file compare equal.
        branched_at: update of the parent from which it continues; None if the run is not a branch.
        parent: the run it branched from, as long as that is open in this window.
        series: every scalar by name; index i is update i + 1.
        in_memory: recently read updates, by number.
        onsets: updates at which clipping, a dead group or a new best action begins.
        changes: (first update under these settings, settings), in order.
        version: increases whenever a panel might have to redraw.
        saved: whether the user has named and kept this run.
        note: message about its file that the user should know, or an empty string.
        read_only: message explaining why it cannot be continued, or an empty string.
        held: whether it is read-only because another window writes its file.
        thinned: stretches where updates were dropped to limit the file size, in this run and in the run it branched
            from.
        next_settings: settings of its next update, if they differ from those of its last one.
        first_answers: tokens of its model's answers to the fixed prompts before the first update; None until computed.
        update_time: duration of an update on this machine, measured before the first one; None if not measured.
        remembered_time: the duration stored from an earlier measurement of the same model; None if there is none.
        why_no_step: message explaining why its updates show no tokens, and how to get them; empty if they do show them.
    """

    def __init__(self, *, title: str, origin: Origin, path: Path) -> None:
        self.id = str(path)
        self.title = title
        self.origin = origin
        self.path = path
        self.resolved = path.resolve()
        self.branched_at: int | None = None
        self.head = 0
        self.series: dict[str, Pyramid] = {name: Pyramid() for name in METRICS}
        self.onsets = tuple(
            Onsets(self.series[name], begins, before)
            for name, begins, before in (
                ("clip_fraction", rises_past, False),
                ("dead_groups", rises_past, False),
                ("best_action", changes, np.nan),
            )
        )
        self.changes: list[tuple[int, Settings]] = [(1, origin.settings)]
        self.version = 0
        self.saved = False
        self.note = ""
        self.read_only = ""
        self.held = False
        self.why_no_step = ""
        self.next_settings: Settings | None = None
        self.first_answers: tuple[tuple[int, ...], ...] | None = None
        self.update_time: UpdateTime | None = None
        self.remembered_time: UpdateTime | None = None
        self.thinned: tuple[Stretch, ...] = ()
        self.parent: RunHandle | None = None
        self._lineage: Lineage | None = None
        self.in_memory: OrderedDict[int, Step] = OrderedDict()
        self.elsewhere: Callable[[int], Step | None] = _nowhere

    @classmethod
    def open(cls, path: Path, poll: Poll | None = None) -> RunHandle:
        """Open a run from its file. A run can be opened in one thread and then used in another.

        Args:
            poll: called before each series with the fraction that has been read.

        Raises:
            RunFileError: the file cannot be read; the message says why.
            Cancelled: ``poll`` raised it.
        """
        reader = RunReader.open(path)
        try:
            return cls._read(path, reader, poll)
        except BaseException:
            reader.close()
            raise

    @classmethod
    def _read(cls, path: Path, reader: RunReader, poll: Poll | None) -> RunHandle:
        if reader.meta.settings.is_recorded:
            sentence = tr("{name} contains a run of another trainer; it cannot be opened as a run of this program.")
            raise RunFileError(sentence.format(name=path.name))
        title = TITLES.get(path.stem) if is_example(path) else reader.meta.title
        handle = cls(title=title or path.stem, origin=reader.origin, path=path)
        handle._lineage = Lineage(reader, path.parent)
        handle.thinned = handle._lineage.thinned()
        handle.extend(_all_series(reader, poll), reader.last)
        handle.changes = list(reader.settings_changes()) or handle.changes
        handle.branched_at = reader.meta.parent[1] if reader.meta.parent else None
        handle.held = not (is_example(path) or reader.newer) and in_use(path)
        handle.read_only = _hindrance(path, reader.newer, handle.held)
        if not reader.meta.ended:
            handle.note = plural(
                "{name} was not closed properly. It has {last:,} update; you can continue from the last.",
                "{name} was not closed properly. It has {last:,} updates; you can continue from the last.",
                reader.last,
            ).format(name=path.name, last=reader.last)
        handle.note = handle.read_only or handle.note
        return handle

    def release(self) -> bool:
        """Allow this window to continue a run that was :attr:`held`, if no other window writes its file any more.

        Returns:
            Whether the run can be continued now.
        """
        if not self.held or in_use(self.path):
            return False
        self.held, self.read_only, self.note = False, "", ""
        self.version += 1
        return True

    @property
    def is_recorded(self) -> bool:
        """Whether another program trained the run. It can be viewed and recomputed, but never continued."""
        return self.origin.settings.is_recorded

    def label(self, step: int) -> int:
        """Return the displayed number of update ``step``. For a recorded run, it is the trainer's number."""
        number = self.trainer_step(step)
        return step if number is None else number

    def trainer_step(self, position: int) -> int | None:
        """Return another trainer's number for the update at ``position`` (counted from 1), or None if it has none."""
        return None

    def numbers(self, number: int) -> dict[str, float]:
        """Return every number of update ``number`` that is in the series, by name."""
        return {name: float(series.values[number - 1]) for name, series in self.series.items() if number <= len(series)}

    def position(self, label: int) -> int | None:
        """Return the update whose displayed number is ``label``, or None if there is none."""
        return label if 1 <= label <= self.head else None

    def extend(self, scalars: dict[str, np.ndarray], head: int) -> None:
        for name, values in scalars.items():
            if name in self.series:
                self.series[name].extend(values)
        self.head = head
        self.version += 1

    def inherit(self, parent: RunHandle, step: int) -> None:
        """Start as a branch of ``parent`` after its update ``step``, with its scalars and settings up to there."""
        self.parent, self.branched_at = parent, step
        self.extend({name: parent.series[name].values[:step] for name in METRICS}, step)
        self.changes = [change for change in parent.changes if change[0] <= max(step, 1)]
        self.thinned = tuple(replace(s, last=min(s.last, step - 1)) for s in parent.thinned if s.first < step)

    def kept(self, number: int, *, forwards: bool = False) -> int:
        """Return the nearest fully recorded update at or before ``number``, or at or after it if ``forwards``.

        If there is none, return ``number`` itself.
        """
        if stretch_at(self.thinned, number) is None or self.elsewhere(number) is not None:
            return number
        if self.parent is not None and number <= (self.branched_at or 0):
            return min(self.parent.kept(number, forwards=forwards), self.branched_at or 0)
        try:
            return self._files(number).kept(number, forwards=forwards)
        except RunFileError:
            return number

    def note_settings(self, step: int, settings: Settings) -> None:
        if settings != self.changes[-1][1]:
            self.changes.append((step, settings))
            self.version += 1

    def settings_at(self, step: int) -> Settings:
        latest = self.changes[0][1]
        for first, settings in self.changes:
            if first > step:
                break
            latest = settings
        return latest

    def preparation(self, cursor: Cursor) -> Callable[[], object] | None:
        """Return the work to do in a thread before the position of ``cursor`` can be shown, or None if none is needed.

        Pass its result to :meth:`adopt`. Updates trained in this window need no preparation, because they are small
        or in memory.
        """
        return None

    def adopt(self, prepared: object) -> None:
        """Store the result of :meth:`preparation`."""

    def prepared(self, number: int) -> Prepared | None:
        """Return the prepared parts of update ``number``, or None if it was not prepared."""
        return None

    def keep(self, step: Step) -> None:
        self.in_memory[step.step] = step
        self.in_memory.move_to_end(step.step)
        while len(self.in_memory) > KEPT_STEPS or (
            len(self.in_memory) > 1 and sum(kept.tokens.size for kept in self.in_memory.values()) > KEPT_TOKENS
        ):
            self.in_memory.popitem(last=False)

    def step(self, number: int) -> Step | None:
        """Return the record of update ``number``, or None for update 0.

        Raises:
            RunFileError: the update cannot be read.
        """
        if number <= 0:
            return None
        if number not in self.in_memory:
            step = self.elsewhere(number)
            if step is None and self.parent is not None and number <= (self.branched_at or 0):
                step = self.parent.step(number)
            if step is None:
                lineage = self._files(number)
                if number > lineage.reader.last:
                    lineage.reader.refresh()
                step = lineage.step(number) if number <= lineage.reader.last else None
            if step is None:
                return None
            self.keep(step)
        return self.in_memory[number]

    def answer(self, question: AnyQuestion) -> AnyAnswer | None:
        """Return the model's earlier answer if the file contains it, otherwise None.

        Raises:
            RunFileError: the file cannot be read.
        """
        if not self.path.exists():
            return None
        return self._files(question.step).reader.answer(question)

    def file_with(self, number: int) -> Path:
        """Return the file that contains update ``number``: the run's own, or that of a run it branched from.

        Raises:
            RunFileError: that file is gone.
        """
        if self.parent is not None and number <= (self.branched_at or 0):
            return self.parent.file_with(number)
        return self._files(number).holder(number).path

    def _files(self, number: int) -> Lineage:
        if self._lineage is None:
            if not self.path.exists():
                sentence = tr("{name} no longer exists, so update {number} cannot be shown.")
                raise RunFileError(sentence.format(name=self.path.name, number=number))
            self._lineage = Lineage(RunReader.open(self.path), self.path.parent)
        return self._lineage

    def rest(self) -> None:
        """Register that the learner has left this run, whose updates are all in its file now."""
        self.elsewhere, head = _nowhere, self.head
        if not self.path.exists():
            return
        with suppress(RunFileError), RunReader.open(self.path) as reader:  # callers that need an update get the error
            if reader.last > head:
                self.extend({name: reader.series(name)[head:] for name in METRICS}, reader.last)
                for step, settings in reader.settings_changes():
                    if step > head:
                        self.note_settings(step, settings)

    def close_file(self) -> None:
        """Close the file. It is reopened when a step is needed."""
        if self._lineage is not None:
            self._lineage.close()
            self._lineage.reader.close()
            self._lineage = None
        if self.parent is not None:
            self.parent.close_file()


def _all_series(reader: RunReader, poll: Poll | None) -> dict[str, np.ndarray]:
    """Return every scalar of a run by name, (n,). A series that only language models have is NaN throughout a bandit's
    run, and takes no memory there.
    """
    language = reader.meta.settings.is_language
    names = [name for name, metric in METRICS.items() if language or not metric.language]
    series = dict.fromkeys(METRICS, np.broadcast_to(np.nan, max(reader.last, 0)))
    for place, name in enumerate(names):
        if poll is not None:
            poll(place / len(names))
        series[name] = reader.series(name)
    return series


def _nowhere(number: int) -> Step | None:
    return None


def _hindrance(path: Path, newer: bool, held: bool) -> str:
    if is_example(path):
        return RECORDED
    if newer:
        sentence = tr("{name} was written by a newer version of GRPO Lab: it can be looked at, but not continued.")
    elif held:
        sentence = tr("{name} is being written by another window: it can be looked at here, but not continued.")
    elif not os.access(path, os.W_OK):
        sentence = tr("{name} is read-only: it can be looked at, but not continued. Save it under another name first.")
    else:
        return ""
    return sentence.format(name=path.name)
