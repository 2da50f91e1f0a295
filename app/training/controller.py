"""The window's side of training: it posts commands to the worker and receives its reports (``transitions``)."""

from __future__ import annotations

import math
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.training.host import Host
from app.training.transitions import TRANSITIONS, after
from app.training.worker import Worker
from grpo_core.breakpoints import Breakpoint
from grpo_core.child.start import Main
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.host import commands
from grpo_core.host.buffer import Buffer, Fresh
from grpo_core.host.other_python import Pythons
from grpo_core.host.reports import Report, State
from grpo_core.progress import Progress
from grpo_core.questions import AnyQuestion
from grpo_core.record import Step
from grpo_core.text import tr

__all__ = ["RUN_LENGTH", "Controller", "Fresh", "State"]

RUN_LENGTH = 200
"""Number of updates after which a run pauses by itself, unless a command sets another number."""
PATIENCE_MS = 5000
"""Milliseconds allowed for a shutdown before the window offers to wait or to quit."""


class Controller(QObject):
    """Controls the learner of the current run. Every method returns at once except ``commit``, ``settle`` and
    ``shutdown``.

    The states and their transitions are listed in :data:`app.training.transitions.TRANSITIONS`.

    To close the window, call :meth:`shutdown`; if that returns False, wait for ``finished``, and on ``still_busy`` ask
    the user. To quit anyway, end the process with ``os._exit``: the thread is never terminated, and every committed
    update is safe in its file.

    Attributes:
        run_id: id of the current run, empty if there is none.
        buffer: the current run's updates that have not been taken yet, None before the first run; data taken from it
            stays valid.
        group: number of the group whose completions :attr:`progress` shows during sampling.
        worker: the thread that trains; it can be paused while a frame is drawn, and provides its process and devices.

    Signals:
        state_changed: a :class:`State`; emitted only when the state changes, never for an update.
        failed: message that says why a run has stopped, and what to do about it.
        reached: message that names the breakpoint at which the current run has just stopped.
        closed: id of a run whose file has just been closed.
        finished: the worker thread has ended.
        still_busy: a shutdown has been waiting for five seconds.
        answered: a question, with its answer or an error message.
        notified: a message for the user.
        progressed: :attr:`progress` has changed.
    """

    state_changed = Signal(object)
    failed = Signal(str)
    reached = Signal(str)
    closed = Signal(str)
    finished = Signal()
    still_busy = Signal()
    answered = Signal(object, object)
    notified = Signal(str)
    progressed = Signal()

    def __init__(
        self,
        parent: QObject | None = None,
        *,
        process: Main | None = None,
        pythons: Pythons | None = None,
    ) -> None:
        """Create a controller whose worker starts with the first run, or with :meth:`warm_up`.

        Args:
            process: main function of the process that computes runs, :func:`grpo_core.host.process.serve`; None to
                compute bandits in the worker's thread.
        """
        super().__init__(parent)
        self.state = State.IDLE
        self.run_id = ""
        self.buffer: Buffer | None = None
        self.group = 0
        self._settings: Settings | None = None
        self._progress: Progress | None = None
        self._order = 0
        self._looked: tuple[str, int, int] | None = None
        host = partial(Host, main=process, pythons=pythons, standing={})
        self.worker = Worker(host, self)
        self.worker.answered.connect(self.answered, Qt.ConnectionType.QueuedConnection)
        self.worker.notified.connect(self.notified, Qt.ConnectionType.QueuedConnection)
        self.worker.progressed.connect(self._on_progress, Qt.ConnectionType.QueuedConnection)
        self.worker.reported.connect(self._on_report, Qt.ConnectionType.QueuedConnection)
        self.worker.finished.connect(self._on_finished, Qt.ConnectionType.QueuedConnection)
        self._busy = QTimer(self)
        self._busy.setSingleShot(True)
        self._busy.timeout.connect(self.still_busy)

    # -- a run -----------------------------------------------------------------------------------------------------

    def begin(
        self,
        settings: Settings,
        path: Path,
        *,
        resume: Step | None = None,
        parent: tuple[Path, int] | None = None,
        title: str = "",
        limit: int | None = None,
        run_id: str | None = None,
    ) -> str:
        """Make a run the current one, paused at its last update, and close the previous run. Return the run's id.

        Args:
            path: the run's file. An existing file is continued; otherwise one is created with the first update.
            resume: the update to continue from, None to start at update 0.
            parent: (file of the parent run, update) for a branch that has no file yet.
            limit: file size in bytes at which the run stops, None for the file's default.
            run_id: id of the run; by default, a new one.
        """
        self.run_id = run_id if run_id is not None else uuid.uuid4().hex
        self._settings = settings
        self.buffer = Buffer(
            self.run_id,
            resume.settings if resume is not None else settings,
            head=resume.step if resume is not None else 0,
        )
        begin = commands.Begin(
            run_id=self.run_id,
            path=Path(path),
            settings=settings,
            buffer=self.buffer,
            resume=resume,
            start=resume.step if resume is not None else 0,
            parent=parent,
            title=title,
            limit=limit,
        )
        if self._post(begin):
            self._start()
        return self.run_id

    @Slot()
    def warm_up(self) -> None:
        """Start the process that computes runs before the first run, unless the window is closing."""
        if self.state not in (State.ENDING, State.ENDED):
            self._start()

    def close_run(self) -> None:
        self._post(commands.Close(run_id=self.run_id))
        self.run_id, self._settings = "", None

    @property
    def head(self) -> int:
        return self.buffer.head if self.buffer is not None else 0

    @property
    def progress(self) -> Progress | None:
        """Progress of the current run's update. None if the update is quick, over, or not being computed."""
        return self._progress if self._progress is not None and self._progress.step > self.head else None

    def take(self) -> Fresh | None:
        """Return the current run's updates since the last call, or None if there are none. Called once per frame."""
        return self.buffer.take() if self.buffer is not None else None

    @Slot()
    def look(self) -> None:
        """Request the updates finished since the last bundle. Called when a frame is drawn.

        The worker sends the request and handles the reply while this thread is idle. During a frame it would wait for
        the interpreter lock, wake at each of the frame's Qt calls, a thousand times a second, and take processor time
        from the run's process.
        """
        if self.buffer is None or self.worker.host.is_here:
            return
        seen = self.buffer.run_id, self.buffer.version, self.group
        if seen != self._looked:
            self._looked = seen
            self.worker.post(commands.Look(run_id=self.buffer.run_id, group=self.group))

    def commit(self, timeout: float = 0.5) -> bool:
        """Wait up to ``timeout`` seconds for every finished update to be on disk. Return whether all of them are."""
        still = self.state in (State.IDLE, State.PREPARING, State.PAUSED, State.FAILED, State.ENDED)
        if self.buffer is None or (still and self.buffer.committed == self.buffer.head):
            return True
        run_id = self.run_id
        done = self.worker.carried_out(lambda token: commands.Commit(run_id=run_id, token=token), timeout)
        return done and self.buffer.committed == self.buffer.head

    def settle(self, timeout: float = 5.0) -> bool:
        """Wait up to ``timeout`` seconds for the worker to carry out every command so far. Return whether it has done
        so.

        The update in progress is cancelled.
        """
        return self.worker.carried_out(lambda token: commands.Settle(token=token), timeout)

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, length: int | None = RUN_LENGTH) -> None:
        """Compute ``length`` further updates, then pause. None for no limit. A run of one update is a single step."""
        if length == 1:
            self.step()
        else:
            self._post(commands.Run(run_id=self.run_id, updates=length))

    def step(self) -> None:
        """Compute one update at once, regardless of the speed. Repeated presses add up."""
        self._post(commands.OneStep(run_id=self.run_id))

    def pause(self) -> None:
        self._post(commands.Pause(run_id=self.run_id))

    def ask(self, question: AnyQuestion) -> None:
        """Ask the current run's model a question. ``answered`` is emitted between two updates."""
        self.worker.go_on()
        self.worker.post(commands.Ask(run_id=self.run_id, question=question))

    def set_speed(self, speed: float | None) -> None:
        """Set the number of updates per second. None for as many as possible.

        Raises:
            SettingsError: ``speed`` is not a number above 0.
        """
        if speed is not None and not (math.isfinite(speed) and speed > 0):
            raise SettingsError("speed", speed, tr("allowed is a number of updates per second above 0, or no limit"))
        self.worker.post(commands.SetSpeed(speed=speed))

    def set_breakpoints(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        self.worker.post(commands.SetBreakpoints(breakpoints=breakpoints))

    def set_settings(self, settings: Settings) -> None:
        """Set the settings for the next update of the current run.

        Raises:
            SettingsError: a structural setting differs, which requires a new run; nothing is changed.
        """
        if self._settings is None or settings == self._settings:
            return
        self._settings.refuse_structural(settings)
        self._settings = settings
        self.worker.post(commands.SetSettings(run_id=self.run_id, settings=settings))

    # -- shutting down -----------------------------------------------------------------------------------------------

    def shutdown(self, timeout: float = 0.0) -> bool:
        """Close the run and end the worker. Return whether that happened within ``timeout`` seconds.

        If not, ``finished`` is emitted later, and ``still_busy`` if the worker has not ended after five seconds.
        """
        if not self.worker.isRunning():
            if self.state is not State.ENDING:  # else its last reports and its end are still on their way
                self._enter(State.ENDED)
            return True
        self.worker.go_on()
        self.run_id, self._settings = "", None
        if self._post(commands.Shutdown()):
            self._busy.start(PATIENCE_MS)
        ended = self.worker.wait(round(timeout * 1000))
        if ended:
            self._busy.stop()
        return ended

    @Slot()
    def _on_finished(self) -> None:
        self._busy.stop()
        self._enter(State.ENDED if self.state in (State.ENDING, State.ENDED) else State.IDLE)
        self.finished.emit()

    # -- reports from the worker -------------------------------------------------------------------------------------

    @Slot(object)
    def _on_report(self, report: Report) -> None:
        if report.closed:
            self.closed.emit(report.closed)
        if report.order == self._order and report.run_id == self.run_id:  # no other state was requested meanwhile
            self._enter(after(self.state, report.state))
            if report.reached:
                self.reached.emit(report.reached)
        if report.failure:
            self.failed.emit(report.failure)

    @Slot(str, object)
    def _on_progress(self, run_id: str, progress: Progress) -> None:
        if run_id == self.run_id and self.state in (State.RUNNING, State.STOPPING):
            self._progress = progress.after(self._progress)
            self.progressed.emit()

    def _start(self) -> None:
        if not self.worker.isRunning():
            self.worker.start()

    def _post(self, command: commands.Command) -> bool:
        """Post a command that starts, stops or closes the run. Return whether the command had anything to act on."""
        state = TRANSITIONS[self.state].get(type(command))
        if state is None:
            return False
        self._order += 1
        self.worker.post(replace(command, order=self._order))
        self._enter(state)
        return True

    def _enter(self, state: State) -> None:
        if state is not self.state:
            self.state = state
            if state not in (State.RUNNING, State.STOPPING):
                self._progress = None
            self.state_changed.emit(state)
