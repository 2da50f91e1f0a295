"""The training loop, which computes updates while a run is running and survives every error of a run.

It is the same in a separate process and in a thread of the window: commands come from whoever drives it, and results
are passed to an :class:`~grpo_core.host.reports.Outlet`. It starts no threads; everything runs in the calling thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress

from grpo_core.breakpoints import Breakpoint, Watch, nothing_before, sentence
from grpo_core.errors import Cancelled, GrpoError, is_out_of_memory
from grpo_core.host.commands import (
    Ask,
    Begin,
    Close,
    Command,
    Commit,
    Look,
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
from grpo_core.host.live_run import Learners, LiveRun
from grpo_core.host.reports import Outlet, Report, State
from grpo_core.questions import AnyQuestion
from grpo_core.runs.run_file import RunReader
from grpo_core.text import tr


class Pace:
    """Determines when the next update is due. The caller waits, so that a command can end the wait."""

    def __init__(self, speed: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._interval = 0.0
        self._due = clock()
        self.set_speed(speed)

    def set_speed(self, speed: float | None) -> None:
        """Set the updates per second, above 0, or None for no limit. This applies to the wait in progress too."""
        began = self._due - self._interval
        self._interval = 1 / speed if speed else 0.0
        self._due = began + self._interval

    @property
    def limited(self) -> bool:
        return self._interval > 0

    def restart(self) -> None:
        self._due = self._clock()

    def delay(self) -> float:
        """Return the seconds until the next update is due. 0 if it is due now."""
        return max(0.0, self._due - self._clock()) if self._interval else 0.0

    def began(self) -> None:
        """Record that an update begins now. Small delays are made up for, so that the average holds; long ones are
        ignored.
        """
        now = self._clock()
        late = now - self._due
        self._due = (self._due if 0 <= late < self._interval else now) + self._interval


WINDOW_BEHIND = 0.05
"""Seconds between checks of a full buffer."""


MOST_TOGETHER = 64
"""Maximum number of updates whose metrics are computed in one call, if they are not displayed individually."""


class BreakpointWatch:
    """The breakpoints of the run in training.

    Attributes:
        breakpoints: all of them, enabled or not.
    """

    def __init__(self) -> None:
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._watch = Watch((), nothing_before)
        self._checked = 0

    @property
    def on(self) -> bool:
        """Whether any breakpoint is enabled, which means that the run must be checked after each update."""
        return any(one.on for one in self.breakpoints)

    def watch(self, live: LiveRun | None) -> None:
        """Check the breakpoints against the updates of ``live`` from now on.

        The run's record shows which conditions are already true; these do not stop it again.
        """
        self._watch = Watch((), nothing_before)
        if live is None or not self.on:
            return
        self._checked = live.head
        try:
            live.output.commit()
            with closing(RunReader.open(live.recorded)) as reader:
                self._watch = Watch(self.breakpoints, lambda name: reader.series(name)[: live.head])
        except GrpoError:  # no file yet, or none that can be read: then nothing is known of what was before
            self._watch = Watch(self.breakpoints, nothing_before)

    def reached(self, live: LiveRun) -> str:
        """Return why ``live`` should stop at the update that it has just finished. Empty if it should go on."""
        if live.head == self._checked or live.scalars is None:
            return ""
        self._checked = live.head
        reached = self._watch.reached(live.scalars)
        return sentence(live.head, reached, live.scalars) if reached else ""


class Loop:
    """Trains one run after the other, each with a learner and the only writing connection to its file.

    Its driver waits for commands for up to :meth:`rest` seconds, then calls :meth:`obey` and :meth:`advance`, until
    the loop has :attr:`ended`.
    """

    def __init__(self, outlet: Outlet, learners: Learners, poll: Callable[[], None], order: int = 0) -> None:
        """Create a loop without a run.

        Args:
            poll: called for every token and every pass; cancels the update in progress by raising ``Cancelled``.
            order: ``order`` of the last command that another loop carried out before this one.
        """
        self.ended = False
        self._outlet = outlet
        self._learners = learners
        self._poll = poll
        self._pace = Pace()
        self._live: LiveRun | None = None
        self._state = State.IDLE
        self._order = order
        self._reported = Report(run_id="", order=order, state=State.IDLE)
        self._until: int | None = None
        self._stepping = False
        self._breakpoints = BreakpointWatch()

    def rest(self) -> float | None:
        """Return the seconds until the next action without a command, or None for never. Finished updates are committed
        before a wait.
        """
        if self._patience() != 0:
            self._try(self._commit)
        return self._patience()

    def obey(self, commands: Iterable[Command]) -> None:
        """Carry out ``commands`` in order and report the resulting state."""
        obeyed = False
        for command in commands:
            self._carry_out(command)
            self._order = max(self._order, command.order)  # afterwards: what it ended is reported as before it
            obeyed = True
        if obeyed:
            self._report()

    def advance(self) -> None:
        """Compute an update if one is due, or a few if nothing needs checking between them."""
        live = self._live
        if live is None or self._state is not State.RUNNING or self._patience() != 0:
            return
        self._pace.began()
        one_by_one = self._stepping or self._pace.limited or self._breakpoints.on
        most = 1 if one_by_one else MOST_TOGETHER if self._until is None else self._until - live.head
        self._try(lambda: live.update(min(most, MOST_TOGETHER)))
        self._outlet.fresh(live.buffer)
        reached = self._breakpoints.reached(live)
        done = self._until is not None and live.head >= self._until
        if reached or (done and self._state is State.RUNNING):
            self._pause()
            self._report(reached=reached)

    def abandon(self) -> None:
        """Write finished updates to disk after the window has ended. The next start offers to recover unclosed runs."""
        if self._live is not None:
            with suppress(Exception):
                self._live.output.commit()

    def _patience(self) -> float | None:
        if self._live is None or self._state is not State.RUNNING:
            return None
        if self._live.buffer.full:  # the window must take updates first
            return WINDOW_BEHIND
        return 0.0 if self._stepping else self._pace.delay()

    def _pause(self) -> None:
        self._try(self._commit)
        if self._state is State.RUNNING:
            self._state = State.PAUSED

    def _commit(self) -> None:
        if self._live is not None and self._state is not State.FAILED:
            self._live.output.commit()

    # -- commands --------------------------------------------------------------------------------------------------

    def _carry_out(self, command: Command) -> None:
        match command:
            case Begin():
                self._begin(command)
            case SetSpeed(speed=speed):
                self._pace.set_speed(speed)
            case SetBreakpoints(breakpoints=breakpoints):
                self._breakpoints.breakpoints = breakpoints
                self._breakpoints.watch(self._live)
            case Shutdown():
                self.leave()
                self.ended = True
            case RunCommand(run_id=run_id) if self._live is not None and run_id == self._live.id:
                self._carry_out_for(self._live, command)
            case Commit(token=token) | Settle(token=token):
                self._outlet.done(token)
            case Ask(question=question):
                self._outlet.answer(question, tr("The question was cancelled."))
            case Look() | RunCommand():  # the window shares the buffer; the run has been left
                pass
            case _:
                raise TypeError(f"a loop knows no command {command!r}")

    def _carry_out_for(self, live: LiveRun, command: RunCommand) -> None:
        match command:
            case Run(updates=updates):
                self._until = None if updates is None else live.head + updates
                self._start(stepping=False)
            case OneStep():
                queued = self._until if self._stepping and self._state is State.RUNNING else None
                self._until = (live.head if queued is None else queued) + 1
                self._start(stepping=True)
            case Pause():
                if self._state is State.RUNNING:
                    self._pause()
            case SetSettings(settings=settings):
                self._try(lambda: live.set_settings(settings))
            case Commit(token=token):
                self._try(self._commit)
                self._outlet.fresh(live.buffer)
                self._outlet.done(token)
            case Ask(question=question):
                self._answer(live, question)
            case Close():
                self.leave()
            case _:
                raise TypeError(f"a run knows no command {command!r}")

    def _begin(self, command: Begin) -> None:
        self.leave()
        live = self._live = LiveRun(command, self._learners, self._poll)
        self._state = State.PAUSED
        self._outlet.fresh(live.buffer)
        self._breakpoints.watch(live)
        self._try(live.prepare)
        if live.note:
            self._outlet.tell(live.note)

    def _answer(self, live: LiveRun, question: AnyQuestion) -> None:
        try:
            self._outlet.answer(question, live.answer(question))
        except Cancelled:
            self._outlet.answer(question, tr("The question was cancelled."))
        except GrpoError as error:
            self._outlet.answer(question, str(error))
        except Exception as error:
            self._outlet.answer(question, _unanswered(error))

    def _start(self, *, stepping: bool) -> None:
        if self._state is not State.RUNNING:
            self._pace.restart()
        self._stepping = stepping
        self._state = State.RUNNING

    def leave(self) -> None:
        """Close the run, if there is one, and report it."""
        live, self._live = self._live, None
        self._state = State.IDLE
        if live is not None:
            failure = ""
            try:
                live.output.close()
            except Exception as error:
                failure = failure_of(live, error)
            self._outlet.fresh(live.buffer)
            self._report(failure, closed=live.id)

    # -- reports ---------------------------------------------------------------------------------------------------

    def _try(self, action: Callable[[], None]) -> None:
        """Run ``action``. An error stops the run, but not the loop."""
        try:
            action()
        except Cancelled:
            pass  # the command that cancelled the update is read next
        except Exception as error:
            assert self._live is not None
            failure = failure_of(self._live, error)
            self._state = State.FAILED
            with suppress(Exception):  # that a full disk refuses again has been reported already
                self._live.output.commit()
            self._report(failure)

    def _report(self, failure: str = "", closed: str = "", reached: str = "") -> None:
        run_id = self._live.id if self._live is not None else ""
        report = Report(
            run_id=run_id, order=self._order, state=self._state, failure=failure, closed=closed, reached=reached
        )
        if report != self._reported:
            self._reported = report
            self._outlet.report(report)


def failure_of(live: LiveRun, error: Exception) -> str:
    """Return the message that ``error`` stopped ``live``. An unexpected error is logged with its traceback."""
    if isinstance(error, GrpoError):
        return str(error)
    if is_out_of_memory(error):
        return tr(
            "The run was stopped after update {head}: memory is short. Every finished update is kept; close other "
            "programs, or choose fewer prompts or a smaller group, and run again."
        ).format(head=live.head)
    logging.getLogger(__name__).error("unexpected error in a run", exc_info=error)
    return tr(
        "The run was stopped after update {head} by an unexpected error ({name}: {error}). Every finished update "
        "is kept; run again, or branch from an earlier update."
    ).format(head=live.head, name=type(error).__name__, error=error)


def _unanswered(error: Exception) -> str:
    if is_out_of_memory(error):
        return tr("The question could not be answered: memory is short. Close other programs, and ask again.")
    logging.getLogger(__name__).error("unexpected error in a question", exc_info=error)
    return tr("The question could not be answered because of an unexpected error ({name}: {error}).").format(
        name=type(error).__name__, error=error
    )
