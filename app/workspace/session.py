"""The runs of a window: new, open, branch, save as, close; and the updates that arrive from the worker."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.training.controller import Controller, Failure, State
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core import learners
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.runs import library
from grpo_core.runs.run_file import copy_run
from grpo_core.text import tr


class Session(QObject):
    """Connects the list of runs with the files on disk and with the one learner that trains.

    Attributes:
        folder: where runs save themselves.
        limit: bytes at which a run pauses.
        thin: at the limit, rather thin out older updates, but for language models.

    Signals:
        runs_changed: a run was added, removed or renamed.
    """

    runs_changed = Signal()

    def __init__(
        self, workspace: Workspace, controller: Controller, player: Player, folder: Path, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._controller = controller
        self._player = player
        self._count = 0
        self.folder = folder
        self.limit: int | None = None
        self.thin = False
        player.prepare = self.make_ready
        workspace.pull.connect(controller.hold)
        workspace.pull.connect(self.take)
        workspace.drawn.connect(controller.go_on)
        workspace.editing.changed.connect(self._on_edited)
        controller.failed.connect(self._on_failed)
        controller.told.connect(self._on_told)
        controller.answered.connect(self._on_answered)
        workspace.asked.connect(self._on_asked)

    # -- runs ------------------------------------------------------------------------------------------------------

    def new_run(self, settings: Settings, title: str = "") -> RunHandle:
        """A run at update 0, numbered where it has no other title; it has no file before its first update."""
        title = title or tr("Run {next}").format(next=self._next())
        run = RunHandle(title=title, origin=learners.origin(settings), path=library.new_path(self.folder, title))
        self._begin(run)
        return run

    def open(self, path: Path) -> RunHandle:
        """A run from a file, at its last update; training goes on meanwhile.

        Raises:
            RunFileError: with a sentence that says what was wrong.
        """
        already = next((run for run in self._workspace.runs if run.path.resolve() == path.resolve()), None)
        if already is not None and not self._moved_on(already):
            self._show(already)
            return already
        run = RunHandle.open(path)
        self._show(run)
        if already is not None:
            self.close_run(already)
        if run.note:
            self._workspace.problem.emit(run.note, "info")
        return run

    def _moved_on(self, run: RunHandle) -> bool:
        """Whether another window has written, or writes, the file of a run that is open here."""
        ours = run is self._workspace.training and self._controller.state is not State.FAILED
        return not ours and run.path.exists() and (bool(run.read_only) or run.on_disk > run.head)

    def branch(self, step: int) -> RunHandle:
        """A new run that goes on from update ``step`` of the active one, with the settings of the controls.

        Raises:
            GrpoError: the update is not recorded.
        """
        parent, wanted = self._workspace.run, self._workspace.editing.settings
        assert parent is not None
        if step == 0:
            return self.new_run(wanted)
        if parent.step(step) is None:
            raise GrpoError(
                tr("Update {step} of {title} is not recorded, so no run can begin there.").format(
                    step=step, title=parent.title
                )
            )
        self._player.pause()
        self._controller.commit()
        run = RunHandle(
            title=tr("Run {next} (from {title}, update {step})").format(
                next=self._next(), title=parent.title, step=step
            ),
            origin=parent.origin,
            path=library.new_path(
                self.folder, tr("Run {count} from update {step}").format(count=self._count, step=step)
            ),
        )
        run.inherit(parent, step)
        self._begin(run)
        changes = {path: new for path, (_, new) in self._workspace.editing.settings.differences(wanted).items()}
        if changes:
            self._workspace.editing.edit(changes, tr("Branch with these settings"))
        return run

    def save_as(self, run: RunHandle, target: Path) -> None:
        """Copy a run's file to ``target``.

        Raises:
            RunFileError: with a sentence that says what was wrong.
        """
        if run is self._workspace.training:
            self._controller.commit()
        if not run.path.exists():
            raise GrpoError(
                tr("{title} has no file of its own before its next update; press Step, then save it.").format(
                    title=run.title
                )
            )
        copy_run(run.path, target)
        run.saved = True
        self.runs_changed.emit()

    def close_run(self, run: RunHandle) -> None:
        """Take a run off the list; its file stays. A window without a run gets a new one."""
        if run is self._workspace.training:
            self._controller.close_run()
            self._controller.commit()  # the worker has done so when it answers, and the file can be opened again
            self._workspace.training = None
        if len(self._workspace.runs) == 1:
            self.new_run(run.origin.settings)
        if run is self._workspace.run:
            self._player.rest()
        self._workspace.remove(run)
        self.runs_changed.emit()

    def show(self, run: RunHandle) -> None:
        """Make another open run the active one; what trains goes on."""
        self._show(run)

    def _show(self, run: RunHandle) -> None:
        self._player.rest()
        self._workspace.activate(run)
        self.runs_changed.emit()

    def _begin(self, run: RunHandle) -> None:
        """Show a new run. The knobs that were turned for it are its own; the run it leaves keeps what it ran under."""
        before = self._workspace.run
        self._show(run)
        if before is not None:
            before.next_settings = None
        if run.origin.settings.is_language:
            self._load(run)

    def _load(self, run: RunHandle) -> None:
        """Loading a language model takes seconds: it begins with the run rather than with its first update."""
        try:
            self.make_ready()
        except GrpoError as error:
            self._workspace.problem.emit(str(error), "warning")

    @Slot(object)
    def _on_asked(self, question: AnyQuestion) -> None:
        """Give a question to the active run's model, unless its file holds the answer."""
        run = self._workspace.run
        assert run is not None
        known = run.answer(question)
        if known is not None:
            self._workspace.answered.emit(question, known)
            return
        try:
            self.make_ready()
        except GrpoError as error:
            self._workspace.refused.emit(question, str(error))
        else:
            self._controller.ask(question)

    @Slot(object, object)
    def _on_answered(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        if isinstance(answer, str):
            self._workspace.refused.emit(question, answer)
        else:
            self._workspace.answered.emit(question, answer)

    @Slot(str)
    def _on_told(self, sentence: str) -> None:
        self._workspace.problem.emit(sentence, "info")

    def _next(self) -> int:
        """A number that no title in the list begins with."""
        self._count += 1
        while any(re.match(rf"Run {self._count}\b", run.title) for run in self._workspace.runs):
            self._count += 1
        return self._count

    def set_thinning(self, on: bool) -> None:
        """Thin out or not; the run that is at hand minds it the next time it is run."""
        self.thin, training = on, self._workspace.training
        if training is not None and self._controller.state in (State.PAUSED, State.FAILED):
            self._controller.close_run()
            self._controller.commit()
            self.take()
            training.rest()
            self._workspace.training = None

    # -- training ----------------------------------------------------------------------------------------------------

    def make_ready(self) -> None:
        """Give the active run to the learner, unless it already has it.

        Raises:
            GrpoError: the run cannot be continued; the message says why.
        """
        run = self._workspace.run
        assert run is not None
        if run is self._workspace.training and self._controller.state is not State.IDLE:
            return
        if run.read_only:
            raise GrpoError(run.read_only)
        resume = run.step(run.head) if run.head else None
        held = resume is not None and (resume.resume or run.origin.settings.is_language)  # a model is replayed
        if run.head and not held:
            raise GrpoError(
                tr("{title} can be looked at, but not continued: its last update holds no policy.").format(
                    title=run.title
                )
            )
        parent = None
        if run.parent is not None and run.branched_at == run.head and not run.path.exists():
            parent = run.parent.file_with(run.head), run.head
        if self._workspace.training is not None:
            self._controller.pause()
            self._controller.commit()
            self.take()
            self._workspace.training.rest()
        run.let_go()
        settings = self._workspace.editing.settings
        self._controller.begin(
            settings,
            run.path,
            resume=resume,
            parent=parent,
            title=run.title,
            limit=self.limit,
            thin=self.thin,
            run_id=run.id,
        )
        self._workspace.training = run
        if self._controller.buffer is not None:
            run.elsewhere = self._controller.buffer.uncommitted

    @Slot()
    def take(self) -> None:
        """Take in the updates that have arrived since the last frame."""
        run = self._workspace.training
        fresh = self._controller.take() if run is not None else None
        if run is None or fresh is None or fresh.run_id != run.id:
            return
        run.extend(fresh.scalars, fresh.head)
        self._take_thinned(run)
        for step, settings in fresh.changes:
            run.note_settings(step, settings)
        run.keep(fresh.last)
        if run is self._workspace.run:
            self._workspace.head_moved()
            self._player.on_new_head()

    def _take_thinned(self, run: RunHandle) -> None:
        buffer, known = self._controller.buffer, run.own_thinned
        if buffer is None or buffer.thinned in ((), known):
            return
        run.note_thinned(buffer.thinned)
        if not known:
            sentence = tr(
                "{title} has reached its size limit: from now on only some of its older updates are kept. "
                "Its curves stay whole; the timeline shows where."
            ).format(title=run.title)
            self._workspace.problem.emit(sentence, "info")

    @Slot()
    def _on_edited(self) -> None:
        """What the controls say holds from the next update on, if the run that is shown is the one that trains."""
        if self._workspace.training is not None and self._workspace.training is self._workspace.run:
            self._controller.set_settings(self._workspace.editing.settings)

    @Slot(object)
    def _on_failed(self, failure: Failure) -> None:
        self.take()
        self._workspace.problem.emit(failure.sentence, "error")
