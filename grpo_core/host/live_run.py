"""A run in training: its learner, its updates and its answers. Used by one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol, runtime_checkable

from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin
from grpo_core.host.run_output import RunOutput
from grpo_core.learners import Earlier, Learner
from grpo_core.metrics import metrics_of
from grpo_core.questions import AnyAnswer, AnyQuestion, FirstAnswers, Replay
from grpo_core.record import Step
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.text import tr
from grpo_core.update_time import UpdateTimeQuestion

TOGETHER = 0.008
"""Seconds during which updates are collected before their metrics are computed together: half a frame of the window."""


class Learners(Protocol):
    """Creates a learner at its start, or at the end of ``resume`` (:func:`grpo_core.learners.learner`)."""

    def __call__(
        self, settings: Settings, *, resume: Step | None, earlier: Earlier, poll: Callable[[], None]
    ) -> Learner: ...


@runtime_checkable
class Answers(Protocol):
    """A learner that can answer questions."""

    def ask(self, question: AnyQuestion, step: Step | None, earlier: Earlier) -> AnyAnswer: ...


class LiveRun:
    """A run that can be continued, one update at a time.

    After any exception, the run is at its last finished update.

    Attributes:
        output: the file that the buffer's updates are written to.
        scalars: the metrics of the last update, None until an update has been computed here.
    """

    def __init__(self, begin: Begin, learners: Learners, poll: Callable[[], None]) -> None:
        self.id = begin.run_id
        self._begin = begin
        self.buffer: Buffer = begin.buffer
        self._settings = begin.settings
        self.output = RunOutput(begin)
        self._learners, self._poll = learners, poll
        self._learner: Learner | None = None
        self._last = begin.unwritten[-1] if begin.unwritten else begin.resume
        self.scalars: Mapping[str, float] | None = None

    @property
    def head(self) -> int:
        return self._last.step if self._last is not None else 0

    def prepare(self) -> None:
        """Create a learner at the last update if there is none yet.

        Raises:
            GrpoError: the run cannot be continued.
        """
        if self._learner is None:
            self._learner = self._learners(self._settings, resume=self._last, earlier=self.earlier, poll=self._poll)

    @property
    def note(self) -> str:
        """A note for the user on how the run was resumed. Empty if there is nothing to say."""
        return str(getattr(self._learner, "note", ""))

    def answer(self, question: AnyQuestion) -> AnyAnswer:
        """Answer a question about a recorded update, and store the answer in the run.

        Raises:
            GrpoError: it cannot be answered; the message says why.
        """
        self.prepare()
        if not isinstance(self._learner, Answers):
            raise GrpoError(
                tr("Only a language model can redo an update under other settings.")
                if isinstance(question, Replay)
                else tr("Only a language model can score a completion.")
            )
        if isinstance(question, (FirstAnswers, UpdateTimeQuestion)) and not self.head:
            return self._learner.ask(question, None, self.earlier)
        answer = self._learner.ask(question, self.earlier(question.step), self.earlier)
        self.output.keep_answer(question, answer)
        return answer

    def earlier(self, number: int) -> Step:
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
        """The file with the recorded updates: the parent's file until this run has one."""
        own = self._begin.path
        return self._begin.parent[0] if self._begin.parent is not None and not own.exists() else own

    def set_settings(self, settings: Settings) -> None:
        """Set the settings of the next update.

        Raises:
            SettingsError: a structural setting differs; the settings are unchanged.
        """
        if self._learner is not None:
            self._learner.settings = settings
        self._settings = settings

    def update(self, most: int = 1) -> None:
        """Compute one update, or up to ``most`` within :data:`TOGETHER` seconds, and pass the updates to the buffer and
        the file.

        Updates finished before an error are kept.

        Raises:
            Cancelled: an urgent command is waiting.
            NonFiniteError: a number of the update is not finite.
            RunFileError: the update is finished, but could not be written.
        """
        self.output.catch_up()
        most = min(most, self.buffer.space) if self.output.is_open else 1  # is there a file that takes it?
        steps, end = list[Step](), time.monotonic() + TOGETHER
        try:
            while not steps or (len(steps) < most and time.monotonic() < end):
                steps.append(self._computed())
        finally:
            for step, scalars in zip(steps, metrics_of(steps), strict=True):
                self._last, self.scalars = step, scalars
                self.buffer.put(step, scalars)
            if steps:
                self.output.save()

    def _computed(self) -> Step:
        self.prepare()
        assert self._learner is not None
        try:
            return next(self._learner)
        except (Cancelled, NonFiniteError):
            raise
        except BaseException:
            self._learner = None  # its state is unknown: the next one is made from the last finished update
            raise
