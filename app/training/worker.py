"""The worker thread: makes updates when it may, sleeps when it may not, and outlives every error of a run."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QObject, QThread, Signal

from app.training.live_run import Learners, LiveRun, Writers
from app.training.mailbox import (
    Ask,
    Begin,
    Close,
    Command,
    Commit,
    Mailbox,
    OneStep,
    Pause,
    Run,
    RunCommand,
    SetBreakpoints,
    SetSettings,
    SetSpeed,
    Settle,
    Shutdown,
)
from app.training.pace import Pace
from app.training.stops import Stops
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.questions import AnyQuestion
from grpo_core.text import tr

SWITCH_INTERVAL = 0.0005
"""Seconds after which Python hands the interpreter to the window's thread; ``benchmarks.bench_latency`` compares."""
LONGEST_FRAME = 0.1
"""Seconds that the worker waits for the window to have drawn; then it goes on in any case."""
WINDOW_BEHIND = 0.05
"""Seconds between looks at a buffer that the window does not empty."""


class State(Enum):
    """What the training is doing, as the window sees it."""

    IDLE = "idle"
    PREPARING = "preparing"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a run stands still.

    Attributes:
        run_id: the run.
        sentence: what was wrong and what would be right.
        step: the last finished update, at which the run stands and from which it may go on.
    """

    run_id: str
    sentence: str
    step: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """Where the worker stands.

    Attributes:
        run_id: the run, empty for none.
        order: of the last command it has seen, so that reports overtaken by a newer command can be told.
        state: IDLE, RUNNING, PAUSED or FAILED.
        failure: what has just gone wrong, else None.
        closed: the run whose file has just been closed, else empty.
        reached: the breakpoint at which the run has just stopped, in a sentence, else empty.
    """

    run_id: str
    order: int
    state: State
    failure: Failure | None = None
    closed: str = ""
    reached: str = ""


class Worker(QThread):
    """Owns the learner and the one writing connection; both live and die in its thread.

    Signals:
        reported: a :class:`Report`, at a change of state and never at an update.
        answered: a question, and its answer or the sentence why there is none.
        told: something the user should know.
    """

    reported = Signal(object)
    answered = Signal(object, object)
    told = Signal(str)

    def __init__(
        self,
        mailbox: Mailbox,
        learners: Learners,
        writers: Writers,
        may_go_on: threading.Event,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._may_go_on = may_go_on
        self._mailbox = mailbox
        self._learners = learners
        self._writers = writers
        self._pace = Pace()
        self._live: LiveRun | None = None
        self._state = State.IDLE
        self._order = 0
        self._reported: Report | None = None
        self._until: int | None = None
        self._stepping = False
        self._ended = False
        self._stops = Stops()

    def run(self) -> None:
        """The thread's whole life: wait, obey, update, and again."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._ended = False
        while not self._ended:
            patience = self._patience()
            if patience != 0:
                self._try(self._commit)
                patience = self._patience()
            commands = self._mailbox.take(patience)
            for command in commands:
                self._obey(command)
            if commands:
                self._report()
            if self._state is State.RUNNING and self._patience() == 0:
                self._update()
        close = getattr(self._learners, "close", None)
        if close is not None:
            close()

    def _patience(self) -> float | None:
        """Seconds until there is something to do without being told; None for never."""
        if self._live is None or self._state is not State.RUNNING:
            return None
        if self._live.full:
            return WINDOW_BEHIND
        return 0.0 if self._stepping else self._pace.delay()

    def _update(self) -> None:
        live = self._live
        assert live is not None
        self._pace.began()
        self._try(live.update)
        reached = self._stops.reached(live)
        done = self._until is not None and live.head >= self._until
        if reached or (done and self._state is State.RUNNING):
            self._rest()
            self._report(reached=reached)

    def _interrupted(self) -> bool:
        """Asked by the learner at every pass: waits while the window draws, but never for long."""
        if not self._may_go_on.is_set():
            self._may_go_on.wait(LONGEST_FRAME)
        return self._mailbox.interrupts()

    def _rest(self) -> None:
        self._try(self._commit)
        if self._state is State.RUNNING:
            self._state = State.PAUSED

    def _commit(self) -> None:
        if self._live is not None and self._state is not State.FAILED:
            self._live.commit()

    # -- commands --------------------------------------------------------------------------------------------------

    def _obey(self, command: Command) -> None:
        self._carry_out(command)
        self._order = max(self._order, command.order)  # afterwards: what it ended is reported as before it

    def _carry_out(self, command: Command) -> None:
        match command:
            case Begin():
                self._close()
                self._live = LiveRun(command, self._learners, self._writers, self._interrupted)
                self._state = State.PAUSED
                self._stops.watch(self._live)
                self._try(self._live.prepare)
                if self._live.note:
                    self.told.emit(self._live.note)
            case SetSpeed(speed=speed):
                self._pace.set_speed(speed)
            case SetBreakpoints(breakpoints=breakpoints):
                self._stops.breakpoints = breakpoints
                self._stops.watch(self._live)
            case Shutdown():
                self._close()
                self._ended = True
            case RunCommand(run_id=run_id) if self._live is not None and run_id == self._live.id:
                self._obey_run(command, self._live)
            case Commit(done=done) | Settle(done=done):
                done.set()

    def _obey_run(self, command: Command, live: LiveRun) -> None:
        match command:
            case Run(updates=updates):
                self._until = None if updates is None else live.head + updates
                self._start(stepping=False)
            case OneStep():
                queued = self._until if self._stepping and self._state is State.RUNNING else None
                self._until = (live.head if queued is None else queued) + 1
                self._start(stepping=True)
            case Pause() if self._state is State.RUNNING:
                self._rest()
            case SetSettings(settings=settings):
                self._try(lambda: live.set_settings(settings))
            case Commit(done=done):
                self._try(self._commit)
                done.set()
            case Ask(question=question):
                self._ask(live, question)
            case Close():
                self._close()

    def _ask(self, live: LiveRun, question: AnyQuestion) -> None:
        try:
            self.answered.emit(question, live.answer(question))
        except Cancelled:
            self.answered.emit(question, tr("The question was given up."))
        except GrpoError as error:
            self.answered.emit(question, str(error))
        except Exception as error:
            self.answered.emit(question, _failure(live, error).sentence)

    def _start(self, *, stepping: bool) -> None:
        if self._state is not State.RUNNING:
            self._pace.restart()
        self._stepping = stepping
        self._state = State.RUNNING

    def _close(self) -> None:
        live, self._live = self._live, None
        self._state = State.IDLE
        if live is not None:
            failure: Failure | None = None
            try:
                live.close()
            except Exception as error:
                failure = _failure(live, error)
            self._report(failure, closed=live.id)

    # -- reports ---------------------------------------------------------------------------------------------------

    def _try(self, action: Callable[[], None]) -> None:
        """Do it; what goes wrong stops the run, not the thread."""
        try:
            action()
        except Cancelled:
            pass  # the command for which the update was given up is the next to be read
        except Exception as error:
            assert self._live is not None
            failure = _failure(self._live, error)
            self._state = State.FAILED
            with suppress(Exception):  # that a full disk refuses again is told already
                self._live.commit()
            self._report(failure)

    def _report(self, failure: Failure | None = None, closed: str = "", reached: str = "") -> None:
        run_id = self._live.id if self._live is not None else ""
        report = Report(
            run_id=run_id, order=self._order, state=self._state, failure=failure, closed=closed, reached=reached
        )
        if report != self._reported:
            self._reported = report
            self.reported.emit(report)


def _failure(live: LiveRun, error: Exception) -> Failure:
    if isinstance(error, GrpoError):
        return Failure(run_id=live.id, sentence=str(error), step=live.head)
    logging.getLogger(__name__).error("unexpected error in a run", exc_info=error)
    sentence = tr(
        "The run was stopped after update {head} by an unexpected error ({name}: {error}). "
        "Nothing finished is lost; run again, or branch from an earlier update."
    ).format(head=live.head, name=type(error).__name__, error=error)
    return Failure(run_id=live.id, sentence=sentence, step=live.head)
