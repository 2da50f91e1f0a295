"""The link between the active run and the learner: hands over the run, and loads the updates that arrive."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import QObject, Slot

from app.clock import now
from app.training.controller import Controller, Failure, State
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.text import tr

INTERVAL = 0.1
"""Minimum seconds between two updates of the window during a fast run. Nobody can read ten numbers per second."""
SLACK = 0.01
"""Tolerance of the interval in seconds, so that all updates of a run at ten updates per second are shown."""


class Throttle:
    """A throttle that admits the first call immediately, and then one call per interval."""

    def __init__(self) -> None:
        self._last = -INTERVAL

    @property
    def ready(self) -> bool:
        """Whether an interval has passed since the last :meth:`start`."""
        return now() - self._last >= INTERVAL - SLACK

    def start(self) -> None:
        self._last = now()


class Training(QObject):
    """Hands the active run to the learner when it is to continue, and loads the learner's updates.

    When the learner leaves a run, the update in progress is cancelled, but it may finish before the learner notices.
    Such updates are read from the file when it is closed or when the run continues.

    Attributes:
        limit: file size in bytes at which a run pauses.
    """

    def __init__(
        self, workspace: Workspace, controller: Controller, player: Player, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._controller = controller
        self._player = player
        self._leaving: Counter[str] = Counter()  # files that still have to be closed, by run
        self._throttle = Throttle()
        self.limit: int | None = None
        player.prepare = self.make_ready
        workspace.pull.connect(controller.worker.hold)
        workspace.pull.connect(self._on_pull)
        workspace.drawn.connect(controller.worker.go_on)
        workspace.drawn.connect(controller.look)
        workspace.editing.changed.connect(self._on_edited)
        controller.failed.connect(self._on_failed)
        controller.closed.connect(self._on_closed)

    def make_ready(self) -> None:
        """Hand the active run to the learner unless it already has it.

        Raises:
            GrpoError: the run cannot be continued; the message says why.
        """
        run = self._workspace.run
        assert run is not None
        if run is self._workspace.training and self._controller.state is not State.IDLE:
            return
        if self._leaving[run.id]:
            self._let_finish()
            self._controller.settle()
            self._rest(run)
        if run.read_only:
            raise GrpoError(run.read_only)
        resume = run.step(run.head) if run.head else None
        # a model is recomputed by replaying
        resumable = resume is not None and (resume.resume or run.origin.settings.is_language)
        if run.head and not resumable:
            sentence = tr("{title} can be looked at, but not continued: its last update does not include a policy.")
            raise GrpoError(sentence.format(title=run.title))
        parent = None
        if run.parent is not None and run.branched_at == run.head and not run.path.exists():
            parent = run.parent.file_with(run.head), run.head
        if self._workspace.training is not None:
            self._let_finish()
            self._leaving[self._workspace.training.id] += 1
        run.close_file()
        settings = self._workspace.editing.settings
        self._controller.begin(
            settings,
            run.path,
            resume=resume,
            parent=parent,
            title=run.title,
            limit=self.limit,
            run_id=run.id,
        )
        self._workspace.training = run
        if self._controller.buffer is not None:
            run.elsewhere = self._controller.buffer.uncommitted

    def _let_finish(self) -> None:
        """Wait for the update in progress if it does not take long."""
        self._controller.pause()
        self._controller.commit()
        self.take()

    @Slot()
    def _on_pull(self) -> None:
        """Load new updates, at most ten times per second while the run continues.

        Nothing else changes the current run, so all panels show the same update whenever they draw.
        """
        if self._throttle.ready or not self._workspace.running:
            self.take()
        self._follow_progress()

    @property
    def _growing(self) -> RunHandle | None:
        """The run in training, if the updates that arrive are its own."""
        run, buffer = self._workspace.training, self._controller.buffer
        return run if run is not None and buffer is not None and buffer.run_id == run.id else None

    def _follow_progress(self) -> None:
        progress = None if self._growing is None else self._controller.progress
        if progress is not self._workspace.progress:
            self._workspace.progress = progress
            self._workspace.request_frame()

    def take(self) -> None:
        run = self._growing
        if run is None:
            return
        self._controller.group = self._workspace.watched_group
        self._workspace.timer.shared = self._controller.worker.host.is_here
        fresh = self._controller.take()
        if fresh is None:
            return
        self._throttle.start()
        run.extend(fresh.scalars, fresh.head)
        for step, settings in fresh.changes:
            run.note_settings(step, settings)
        run.keep(fresh.last)
        if run is self._workspace.run:
            self._workspace.head_moved()
            self._player.on_new_head()

    @Slot(str)
    def _on_closed(self, run_id: str) -> None:
        self._leaving[run_id] = max(self._leaving[run_id] - 1, 0)
        run = next((run for run in self._workspace.runs if run.id == run_id), None)
        if run is not None and run is not self._workspace.training:
            self._rest(run)

    def _rest(self, run: RunHandle) -> None:
        head = run.head
        run.rest()
        if run is self._workspace.run and run.head > head:
            self._workspace.head_moved()

    @Slot()
    def _on_edited(self) -> None:
        """Apply the controls from the next update on, if the current run is the one in training."""
        if self._workspace.training is not None and self._workspace.training is self._workspace.run:
            self._controller.set_settings(self._workspace.editing.settings)

    @Slot(object)
    def _on_failed(self, failure: Failure) -> None:
        self.take()
        self._workspace.problem.emit(failure.sentence, "error")
