"""A run that is being trained: its learner, its file, and what it has finished. Used by one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, RunFileError
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin
from grpo_core.learners import Earlier, Learner
from grpo_core.metrics import metrics_of
from grpo_core.questions import AnyAnswer, AnyQuestion, FirstAnswers, FixedAnswers, Replay
from grpo_core.record import Step
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.watch import LostFileError
from grpo_core.runs.writer import LIMIT
from grpo_core.text import tr
from grpo_core.update_time import UpdateTime, UpdateTimeQuestion

TOGETHER = 0.008
"""Seconds for which updates may be made before their metrics are computed together: half a frame of the window."""


class Learners(Protocol):
    """Makes a learner, at its start or at the end of ``resume`` (:func:`grpo_core.learners.learner`)."""

    def __call__(
        self, settings: Settings, *, resume: Step | None, earlier: Earlier, cancelled: Callable[[], bool]
    ) -> Learner: ...


@runtime_checkable
class Answers(Protocol):
    """A learner that can be asked."""

    def ask(self, question: AnyQuestion, step: Step, earlier: Earlier) -> AnyAnswer: ...
    def first_answers(self) -> FixedAnswers: ...
    def update_time(self) -> UpdateTime: ...


class Writer(Protocol):
    """What a live run needs of :class:`grpo_core.runs.run_file.RunWriter`."""

    committed: int
    full: str | None

    def keep_answer(self, question: AnyQuestion, answer: AnyAnswer) -> None: ...
    def extend(self, updates: Iterable[tuple[Step, Mapping[str, float]]]) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


Writers = Callable[[Begin, Settings, bool], Writer]
"""(what the run was begun with, settings of its first update, whether the file is new) -> its writer."""


def run_writer(begin: Begin, settings: Settings, new: bool) -> Writer:
    """The writer of a run file.

    Raises:
        RunFileError: it cannot be written, or another window writes it.
    """
    limit = LIMIT if begin.limit is None else begin.limit
    if not new:
        return RunWriter.open(begin.path, limit=limit, thin=begin.thin)
    if begin.parent is None:
        return RunWriter.create(begin.path, settings, title=begin.title, limit=limit, thin=begin.thin)
    path, point = begin.parent
    with closing(RunReader.open(path)) as reader:
        return RunWriter.create(
            begin.path, settings, title=begin.title, parent=(reader, point), limit=limit, thin=begin.thin
        )


class LiveRun:
    """A run that can be continued, one update at a time.

    After any exception it stands at its last finished update. What could not be written stays in the buffer and is
    written first when the run goes on.

    Attributes:
        id: what commands and reports call it.
        buffer: where its updates go.
        scalars: the metrics of the last update, None before one was made here.
    """

    def __init__(self, begin: Begin, learners: Learners, writers: Writers, cancelled: Callable[[], bool]) -> None:
        self.id = begin.run_id
        self._begin = begin
        self.buffer: Buffer = begin.buffer
        self._settings = begin.settings
        self._learners, self._writers, self._cancelled = learners, writers, cancelled
        self._learner: Learner | None = None
        self._writer: Writer | None = None
        self._appended = self.buffer.committed
        self._last = begin.unwritten[-1] if begin.unwritten else begin.resume
        self.scalars: Mapping[str, float] | None = None

    @property
    def head(self) -> int:
        """Number of the last finished update."""
        return self._last.step if self._last is not None else 0

    @property
    def full(self) -> bool:
        """Whether the window has to take something before the run can go on."""
        return self.buffer.full

    def prepare(self) -> None:
        """Have a learner that stands at the head.

        Raises:
            GrpoError: the run cannot be continued.
        """
        if self._learner is None:
            self._learner = self._learners(
                self._settings, resume=self._last, earlier=self._earlier, cancelled=self._cancelled
            )

    @property
    def note(self) -> str:
        """What the user should know of how the run was taken up; empty for nothing."""
        return str(getattr(self._learner, "note", ""))

    def answer(self, question: AnyQuestion) -> AnyAnswer:
        """The answer to a question about a recorded update, which is kept in the run.

        Raises:
            GrpoError: it cannot be answered; the message says why.
        """
        self.prepare()
        if not isinstance(self._learner, Answers):
            raise GrpoError(
                tr("Only a language model can be asked for another update.")
                if isinstance(question, Replay)
                else tr("Only a language model can score a completion.")
            )
        if isinstance(question, FirstAnswers) and not self.head:
            return self._learner.first_answers()  # the first update records the same
        if isinstance(question, UpdateTimeQuestion) and not self.head:
            return self._learner.update_time()
        answer = self._learner.ask(question, self._earlier(question.step), self._earlier)
        if self._begin.path.exists():
            with self._closing_on_error():
                self._opened(self._settings).keep_answer(question, answer)
        return answer

    def _earlier(self, number: int) -> Step:
        """A recorded update of this run."""
        if self._last is not None and number == self._last.step:
            return self._last
        uncommitted = self.buffer.uncommitted(number)
        if uncommitted is not None:
            return uncommitted
        path = self.recorded
        with closing(RunReader.open(path)) as reader, closing(Lineage(reader, path.parent)) as lineage:
            return lineage.step(number)

    @property
    def recorded(self) -> Path:
        """The file that holds what the run has recorded: that of its parent before its own first update."""
        own = self._begin.path
        return self._begin.parent[0] if self._begin.parent is not None and not own.exists() else own

    def set_settings(self, settings: Settings) -> None:
        """What the next update runs under.

        Raises:
            SettingsError: a structural setting differs; the settings stay as they were.
        """
        if self._learner is not None:
            self._learner.settings = settings
        self._settings = settings

    def update(self, most: int = 1) -> None:
        """One more update, or up to ``most`` within :data:`TOGETHER` seconds, into the buffer and on their way to the
        file. What was finished before an error is kept.

        Raises:
            Cancelled: an urgent command waits.
            NonFiniteError: a number of the update is not finite.
            RunFileError: the update is finished, but could not be written.
        """
        if self._appended < self.head:
            self.save()
        if self._writer is None and self._begin.path.exists():
            with self._closing_on_error():
                self._opened(self._settings)
        most = min(most, self.buffer.room) if self._writer is not None else 1  # is there a file that takes it?
        steps, end = list[Step](), time.monotonic() + TOGETHER
        try:
            while not steps or (len(steps) < most and time.monotonic() < end):
                steps.append(self._computed())
        finally:
            finished = list(zip(steps, metrics_of(steps), strict=True))
            for step, scalars in finished:
                self._last, self.scalars = step, scalars
                self.buffer.put(step, scalars)
            self._write(finished)

    def _write(self, finished: Sequence[tuple[Step, Mapping[str, float]]]) -> None:
        """Give these updates to the file, and those before them that it does not have yet."""
        if finished and self._writer is not None and self._appended == finished[0][0].step - 1:
            with self._closing_on_error():
                self._extend(self._writer, finished)
                self._note_committed()
        elif finished:
            self.save()

    def save(self) -> None:
        """Give every finished update to the file, which commits when 50 ms have passed since the last time.

        Raises:
            RunFileError: writing failed, or the file or the disk is full.
        """
        with self._closing_on_error():
            waiting = self.buffer.waiting(self._appended)
            if waiting:
                writer = self._opened(waiting[0][0].settings)
                self._extend(writer, [(step, scalars) for step, scalars in waiting if step.step > self._appended])
            self._note_committed()

    def _extend(self, writer: Writer, updates: Sequence[tuple[Step, Mapping[str, float]]]) -> None:
        if updates:
            writer.extend(updates)
            self._appended = updates[-1][0].step

    def commit(self) -> None:
        """Put every finished update on disk.

        Raises:
            RunFileError: as for :meth:`save`.
        """
        self.save()
        with self._closing_on_error():
            if self._writer is not None and self.buffer.committed < self._appended:
                self._writer.commit()
                self._note_committed()

    def close(self) -> None:
        """Close the file with everything in it.

        Raises:
            RunFileError: some updates could not be written; the message says how many.
        """
        reason: GrpoError | None = None
        try:
            self.save()
        except GrpoError as error:
            reason = error
        try:
            if self._writer is not None:
                self._writer.close()
        except GrpoError as error:
            reason = error
        self._forget_writer()
        if isinstance(reason, LostFileError):
            raise reason
        lost = self.head - self.buffer.committed
        if reason is not None and lost:
            raise RunFileError(
                tr("The last {lost} updates could not be written to {name}. {reason}").format(
                    lost=lost, name=self._begin.path.name, reason=reason
                )
            )

    def _computed(self) -> Step:
        self.prepare()
        assert self._learner is not None
        try:
            return next(self._learner)
        except (Cancelled, NonFiniteError):
            raise
        except BaseException:
            self._learner = None  # nobody knows where it stands: the next one is made from the last finished update
            raise

    def _opened(self, settings: Settings) -> Writer:
        if self._writer is None:
            new = self.buffer.committed == self._begin.start and not self._begin.path.exists()
            writer = self._writers(self._begin, settings, new)
            self._writer = writer
            if not self.buffer.committed <= writer.committed <= self.head:
                raise RunFileError(
                    tr(
                        "{name} holds {committed} updates, but this run goes on from "
                        "update {head}; open the file again, or branch into a new one."
                    ).format(name=self._begin.path.name, committed=writer.committed, head=self.buffer.committed)
                )
            self._appended = writer.committed
        return self._writer

    def _note_committed(self) -> None:
        if self._writer is None:
            return
        if self._writer.committed > self.buffer.committed:
            self.buffer.mark_committed(self._writer.committed)
            self.buffer.thinned = getattr(self._writer, "thinned", ())
        if self._writer.full is not None:
            raise RunFileError(self._writer.full)

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """After an error the file is closed; it is opened again, and what it holds counted, when the run goes on."""
        try:
            yield
        except BaseException:
            if self._writer is not None:
                with suppress(Exception):
                    self._writer.close()
            self._forget_writer()
            raise

    def _forget_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and self.buffer.committed < writer.committed <= self.head:
            self.buffer.mark_committed(writer.committed)
        self._appended = self.buffer.committed
