"""One run as the window holds it: its scalars in memory, its steps on disk or, while young, in the worker's buffer."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.examples import RECORDED, TITLES, is_example
from app.plotting.pyramid import Pyramid
from app.workspace.cursor import Cursor
from app.workspace.onsets import Onsets, changes, leaves_zero
from app.workspace.prepared import Prepared
from app.workspace.series_reading import Poll, all_series
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.metrics import METRICS
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.record import Origin, Step
from grpo_core.runs.files import in_use
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.runs.thinning import Stretch, stretch_at
from grpo_core.text import tr
from grpo_core.update_time import UpdateTime

KEPT_STEPS = 64
"""Decoded steps that stay in memory."""
KEPT_TOKENS = 4_000_000
"""Tokens of all of these together, where there are several: some 100 bytes a token."""


class RunHandle:
    """A run that is open in the window.

    Attributes:
        id: tells the runs of a window apart.
        title: what the list of runs shows.
        origin: the run before its first update.
        path: its file; the file exists from the first update on.
        resolved: the same without links, by which two names of one file are known.
        branched_at: update of the parent that it goes on from, None for a run of its own.
        parent: the run it goes on from, as long as that is open in this window.
        head: last computed update.
        series: every scalar, by name; index i is update i + 1.
        in_memory: updates that were read lately, by number.
        onsets: updates at which a clip begins, a dead group, another best action.
        changes: (first update under them, settings), in order.
        version: grows when a panel might have to draw again.
        saved: the user has named and kept this run.
        note: what a person should know of its file, in a sentence, or empty.
        read_only: why it can be looked at only, in a sentence, or empty.
        held: that is because another window writes its file.
        thinned: where updates were dropped to keep a file small, also of the run it goes on from.
        own_thinned: the same of its own file.
        next_settings: what its next update will run under where that is no longer what its last one ran under.
        first_answers: tokens of what its model has answered to the fixed prompts before its first update; None until
            it has.
        update_time: how long an update takes here, measured before the first one; None where it was not.
        remembered_time: the same, measured at an earlier time of the same model; None where none is kept.
        why_no_step: why its updates show no tokens, and how to get them, in a sentence; empty where they do.
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
            Onsets(self.series[name], begins)
            for name, begins in (("clip_fraction", leaves_zero), ("dead_groups", leaves_zero), ("best_action", changes))
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
        self.own_thinned: tuple[Stretch, ...] = ()
        self.parent: RunHandle | None = None
        self._lineage: Lineage | None = None
        self.in_memory: OrderedDict[int, Step] = OrderedDict()
        self.elsewhere: Callable[[int], Step | None] = _nowhere

    @classmethod
    def open(cls, path: Path, poll: Poll | None = None) -> RunHandle:
        """A run from its file, which may be opened in a thread and used in another afterwards.

        Args:
            path: of the file.
            poll: says whether to give up, and is told how far the reading is.

        Raises:
            RunFileError: the file cannot be read; the message says why.
            Cancelled: ``poll`` said so.
        """
        reader = RunReader.open(path)
        try:
            return cls._read(path, reader, poll)
        except BaseException:
            reader.close()
            raise

    @classmethod
    def _read(cls, path: Path, reader: RunReader, poll: Poll | None) -> RunHandle:
        title = TITLES.get(path.stem) if is_example(path) else reader.meta.title
        handle = cls(title=title or path.stem, origin=reader.origin, path=path)
        handle._lineage = Lineage(reader, path.parent)
        handle.own_thinned, handle.thinned = reader.thinned, handle._lineage.thinned()
        handle.extend(all_series(path, reader, poll), reader.last)
        handle.changes = list(reader.settings_changes()) or handle.changes
        handle.branched_at = reader.meta.parent[1] if reader.meta.parent else None
        handle.held = not (is_example(path) or reader.newer) and in_use(path)
        handle.read_only = _hindrance(path, reader.newer, handle.held)
        if not reader.meta.ended:
            handle.note = tr("{name} was not closed properly. It holds {last:,} updates; go on from the last.").format(
                name=path.name, last=reader.last
            )
        handle.note = handle.read_only or handle.note
        return handle

    def release(self) -> bool:
        """Allow this window to continue a run that was :attr:`held`, once no other window writes its file.

        Returns:
            Whether that is so now.
        """
        if not self.held or in_use(self.path):
            return False
        self.held, self.read_only, self.note = False, "", ""
        self.version += 1
        return True

    @property
    def is_recorded(self) -> bool:
        """Whether another program trained it: it is looked at and recomputed, never continued."""
        return self.origin.settings.is_recorded

    def label(self, step: int) -> int:
        """The number by which people know update ``step``: of a recorded run, the trainer's own."""
        return step

    def extend(self, scalars: dict[str, np.ndarray], head: int) -> None:
        """Take in the scalars of the updates up to ``head``."""
        for name, values in scalars.items():
            if name in self.series:
                self.series[name].extend(values)
        self.head = head
        self.version += 1

    def inherit(self, parent: RunHandle, step: int) -> None:
        """Begin as a branch of ``parent`` after its update ``step``: the same scalars and settings up to there."""
        self.parent, self.branched_at = parent, step
        self.extend({name: parent.series[name].values[:step] for name in METRICS}, step)
        self.changes = [change for change in parent.changes if change[0] <= max(step, 1)]
        self.thinned = tuple(replace(s, last=min(s.last, step - 1)) for s in parent.thinned if s.first < step)

    def note_thinned(self, own: tuple[Stretch, ...]) -> None:
        """Note the stretches of updates that the run's own file has dropped at its size limit."""
        before = [s for s in self.thinned if s.first <= (self.branched_at or 0)]
        self.own_thinned, self.thinned = own, (*before, *own)
        self.version += 1

    def kept(self, number: int, *, forwards: bool = False) -> int:
        """The nearest update from ``number`` on, or up to it, that can be shown in full. ``number`` if none can."""
        if stretch_at(self.thinned, number) is None or self.elsewhere(number) is not None:
            return number
        if self.parent is not None and number <= (self.branched_at or 0):
            return min(self.parent.kept(number, forwards=forwards), self.branched_at or 0)
        try:
            return self._files(number).kept(number, forwards=forwards)
        except RunFileError:
            return number

    def note_settings(self, step: int, settings: Settings) -> None:
        """Remember that ``settings`` hold from update ``step`` on."""
        if settings != self.changes[-1][1]:
            self.changes.append((step, settings))
            self.version += 1

    def settings_at(self, step: int) -> Settings:
        """The settings of update ``step``."""
        latest = self.changes[0][1]
        for first, settings in self.changes:
            if first > step:
                break
            latest = settings
        return latest

    def preparation(self, cursor: Cursor) -> Callable[[], object] | None:
        """The work to be done in a thread before the place of ``cursor`` can be shown. None where nothing is.

        Its result goes to :meth:`adopt`. Updates that are trained here are small, or in memory.
        """
        return None

    def adopt(self, prepared: object) -> None:
        """Keep what :meth:`preparation` has made."""

    def prepared(self, number: int) -> Prepared | None:
        """The prepared parts of update ``number``. None where nothing was."""
        return None

    def keep(self, step: Step) -> None:
        """Hold a decoded step in memory."""
        self.in_memory[step.step] = step
        self.in_memory.move_to_end(step.step)
        while len(self.in_memory) > KEPT_STEPS or (
            len(self.in_memory) > 1 and sum(kept.tokens.size for kept in self.in_memory.values()) > KEPT_TOKENS
        ):
            self.in_memory.popitem(last=False)

    def step(self, number: int) -> Step | None:
        """The record of update ``number``. None at update 0.

        Raises:
            RunFileError: the file cannot be read there.
        """
        if number <= 0:
            return None
        if number not in self.in_memory:
            step = self.elsewhere(number)
            if step is None and self.parent is not None and number <= (self.branched_at or 0):
                step = self.parent.step(number)
            if step is None:
                step = self._from_file(number)
            if step is None:
                return None
            self.keep(step)
        return self.in_memory[number]

    def answer(self, question: AnyQuestion) -> AnyAnswer | None:
        """The model's earlier answer, if its file holds it.

        Raises:
            RunFileError: the file cannot be read.
        """
        if not self.path.exists():
            return None
        return self._files(question.step).reader.answer(question)

    def file_with(self, number: int) -> Path:
        """The file that holds update ``number``: its own, or that of a run it branched from.

        Raises:
            RunFileError: there is none any more.
        """
        if self.parent is not None and number <= (self.branched_at or 0):
            return self.parent.file_with(number)
        return self._files(number).holder(number).path

    def _from_file(self, number: int) -> Step | None:
        lineage = self._files(number)
        if number > lineage.reader.last:
            lineage.reader.refresh()
        return lineage.step(number) if number <= lineage.reader.last else None

    def _files(self, number: int) -> Lineage:
        if self._lineage is None:
            if not self.path.exists():
                raise RunFileError(
                    tr("{name} is not there any more, so update {number} cannot be shown.").format(
                        name=self.path.name, number=number
                    )
                )
            self._lineage = Lineage(RunReader.open(self.path), self.path.parent)
        return self._lineage

    @property
    def on_disk(self) -> int:
        """Last update in the file.

        Raises:
            RunFileError: the file cannot be read.
        """
        with RunReader.open(self.path) as reader:
            return reader.last

    def rest(self) -> None:
        """The learner has left this run: everything is in its file now, an update that was not taken in yet too."""
        self.elsewhere = _nowhere
        with suppress(RunFileError):  # whoever asks for an update will be told
            if self.path.exists() and self.on_disk > self.head:
                self._take_from_file()

    def _take_from_file(self) -> None:
        head = self.head
        with RunReader.open(self.path) as reader:
            self.extend({name: reader.series(name)[head:] for name in METRICS}, reader.last)
            for step, settings in reader.settings_changes():
                if step > head:
                    self.note_settings(step, settings)

    def close_file(self) -> None:
        """Let go of the file. It is opened again when a step is asked for."""
        if self._lineage is not None:
            self._lineage.close()
            self._lineage.reader.close()
            self._lineage = None
        if self.parent is not None:
            self.parent.close_file()


def _nowhere(number: int) -> Step | None:
    return None


def _hindrance(path: Path, newer: bool, held: bool) -> str:
    """The reason why a run file can be looked at only, in a sentence. Empty where it can be continued."""
    if is_example(path):
        return RECORDED
    if newer:
        return tr("{name} was written by a newer version of GRPO Lab: it can be looked at, but not continued.").format(
            name=path.name
        )
    if held:
        return tr("{name} is being written by another window: it can be looked at here, but not continued.").format(
            name=path.name
        )
    if not os.access(path, os.W_OK):
        return tr(
            "{name} is read-only: it can be looked at, but not continued. Save it under another name first."
        ).format(name=path.name)
    return ""
