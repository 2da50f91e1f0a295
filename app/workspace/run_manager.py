"""The runs of a window: new, open, branch, save as, close, and the updates that arrive from the worker."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.examples import is_example
from app.training.controller import Controller, State
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.training import Training
from app.workspace.workspace import Workspace
from grpo_core import learners
from grpo_core.config import Settings, is_live
from grpo_core.errors import GrpoError
from grpo_core.lm.kept_prompts import at_hand
from grpo_core.lm.recorded_answers import recorded_answers
from grpo_core.questions import AnyAnswer, AnyQuestion, FirstAnswers, FixedAnswers
from grpo_core.runs import library
from grpo_core.runs.run_file import copy_run
from grpo_core.text import tr
from grpo_core.update_time import StoredTimes, UpdateTime, UpdateTimeQuestion


class RunManager(QObject):
    """Keeps the list of runs, the files on disk and the learner consistent.

    Attributes:
        training: the run that the learner is working on.
        times: measured durations of updates; None if they are not kept between starts.

    Signals:
        runs_changed: emitted when a run is added, removed or renamed.
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
        self.times: StoredTimes | None = None
        self.training = Training(workspace, controller, player, self)
        controller.notified.connect(self._on_notified)
        controller.answered.connect(self._on_answered)
        workspace.asked.connect(self.answer_asked)

    # -- runs ------------------------------------------------------------------------------------------------------

    def new_run(self, settings: Settings, title: str = "") -> RunHandle:
        """Create a run at update 0. Its file is created with the first update.

        If ``title`` is empty, the title is “Run” and a number.
        """
        run = self._made(settings, title or tr("Run {next}").format(next=self._next()))
        self._begin(run)
        return run

    def change_structure(self, settings: Settings, goal: RunHandle | None = None) -> RunHandle:
        """Create a run at update 0 under settings with which the current run cannot continue.

        It replaces the current run if that has no updates yet; otherwise the old run stays in the list. The edits
        that led to it can be undone.

        Args:
            goal: a run to return to instead, if it is still listed and can continue under these settings.

        Raises:
            GrpoError: such a run is impossible; the message says why, and the current run stays.
        """
        left = self._workspace.run
        assert left is not None
        if goal is not None and goal in self._workspace.runs and _fits(goal, settings):
            self.show(goal, keep_edits=True)
            self._workspace.editing.put(settings)
            run = goal
        else:
            run = self._made(settings, tr("Run {next}").format(next=self._next()) if left.head else left.title)
            if not left.head:
                self._workspace.runs.insert(self._workspace.runs.index(left), run)
            self._begin(run, keep_edits=True)
        if not left.head:
            self.close_run(left)
        return run

    def _made(self, settings: Settings, title: str) -> RunHandle:
        """Return a run at update 0 with a path that no other run of this window has."""
        path = library.new_path(self.folder, title)
        known, count = {run.path for run in self._workspace.runs}, 1
        while path in known:
            count += 1
            path = library.free_name(library.new_path(self.folder, f"{title} {count}"))
        return RunHandle(title=title, origin=learners.origin(settings), path=path)

    def open(self, path: Path) -> RunHandle:
        """Open a run from a file at its last update, and wait until it has been read.

        Training continues in the meantime.

        Raises:
            RunFileError: the file cannot be opened; the message says why.
        """
        ours = self.trained_from(path)
        if ours is not None:
            self.show(ours)
            return ours
        return self.adopt(RunHandle.open(path))

    def trained_from(self, path: Path) -> RunHandle | None:
        """Return the run at ``path`` if this window trains it or is about to, or None if the file has to be opened."""
        for run in self._workspace.runs:
            if run.path == path and (self._is_trained(run) or not run.head):
                return run
        return None

    def adopt(self, run: RunHandle) -> RunHandle:
        """Show a run that was read from its file.

        If a run with the same file is already open, and no other window writes or has extended the file, that run is
        shown instead.
        """
        already = next((other for other in self._workspace.runs if other.resolved == run.resolved), None)
        if already is not None and (self._is_trained(already) or not (already.read_only or run.head > already.head)):
            run.close_file()
            self.show(already)
            return already
        self.show(run)
        if already is not None:
            self.close_run(already)
        if run.note and not is_example(run.path):  # the bar above the controls describes a shipped run
            self._workspace.problem.emit(run.note, "info")
        return run

    def add(self, run: RunHandle) -> None:
        """Show a run that was opened elsewhere, at its last update. It replaces an untouched new run."""
        before = self._workspace.run
        self.show(run)
        if before is not None and before is not self._workspace.training and not before.head and not before.saved:
            self.close_run(before)

    def _is_trained(self, run: RunHandle) -> bool:
        return run is self._workspace.training and self._controller.state is not State.FAILED

    def branch(self, step: int) -> RunHandle:
        """Create a run that continues from update ``step`` of the active one, with the settings in the controls.

        Raises:
            GrpoError: the update is not recorded.
        """
        parent, wanted = self._workspace.run, self._workspace.editing.settings
        assert parent is not None
        if parent.is_recorded:
            raise GrpoError(parent.read_only)
        if step == 0:
            return self.new_run(wanted)
        if parent.step(step) is None:
            sentence = tr("Update {step} of {title} is not recorded, so no run can begin there.")
            raise GrpoError(sentence.format(step=step, title=parent.title))
        self._player.pause()
        self._controller.commit()
        title, name = tr("Run {next} (from {title}, update {step})"), tr("Run {count} from update {step}")
        number = self._next()
        run = RunHandle(
            title=title.format(next=number, title=parent.title, step=step),
            origin=parent.origin,
            path=library.new_path(self.folder, name.format(count=number, step=step)),
        )
        run.inherit(parent, step)
        self._begin(run)
        changes = {path: new for path, (_, new) in self._workspace.editing.settings.differences(wanted).items()}
        if changes:
            self._workspace.editing.edit(changes, tr("Branch with these settings"))
        return run

    def save_as(self, run: RunHandle, target: Path) -> None:
        """Copy a run's file to ``target``, and wait until it has been written.

        Raises:
            RunFileError: the file cannot be copied; the message says why.
        """
        self.commit(run)
        copy_run(run.path, target)
        self.mark_saved(run)

    def commit(self, run: RunHandle) -> None:
        """Write all of a run's data to its file, so that it can be copied.

        Raises:
            GrpoError: it has no file yet, or none of its own.
        """
        if run.is_recorded:
            raise GrpoError(tr("A recorded run is not copied: it stays where its trainer wrote it."))
        if run is self._workspace.training:
            self._controller.commit()
        if not run.path.exists():
            sentence = tr("{title} gets its own file only with its next update; press Step, then save it.")
            raise GrpoError(sentence.format(title=run.title))

    def mark_saved(self, run: RunHandle) -> None:
        run.saved = True
        self.runs_changed.emit()

    def close_run(self, run: RunHandle) -> None:
        """Remove a run from the list, but keep its file. If no run is left, a new one is created.

        Closing a run twice has no effect: a lesson ends when another run is shown, and closes its own runs.
        """
        if run not in self._workspace.runs:
            return
        if run is self._workspace.training:
            self._controller.close_run()
            self._controller.commit()  # the worker's answer means that its file is closed, and can be opened again
            self._workspace.training = None
        if len(self._workspace.runs) == 1:
            self._fresh(self._workspace.editing.settings if run.is_recorded else run.origin.settings)
        if run is self._workspace.run:
            self._player.rest()
        self._workspace.remove(run)
        self.runs_changed.emit()

    def _fresh(self, settings: Settings) -> None:
        """Create a run under ``settings``, or the default bandit if their prompts are missing or unusable."""
        try:
            self.new_run(settings if at_hand(settings) else Settings())
        except GrpoError:
            self.new_run(Settings())

    def show(self, run: RunHandle, *, keep_edits: bool = False) -> None:
        """Make another open run the active one. Training continues. ``keep_edits`` keeps the undo history."""
        self._player.rest()
        self._workspace.activate(run, keep_edits=keep_edits)
        self.runs_changed.emit()

    def _begin(self, run: RunHandle, *, keep_edits: bool = False) -> None:
        """Show a new run. The edits made for it belong to it; the previous run keeps the settings it ran under."""
        before = self._workspace.run
        self.show(run, keep_edits=keep_edits)
        if before is not None:
            before.next_settings = None
        if run.origin.settings.is_language:
            self.load_model(run)

    def load_model(self, run: RunHandle) -> None:
        """Start loading a language model as soon as its run is shown, because loading takes seconds."""
        try:
            self.training.make_ready()
        except GrpoError as error:
            self._workspace.problem.emit(str(error), "warning")
            return
        settings = run.origin.settings
        if self.times is not None and settings.model.folder and not run.head:
            run.remembered_time = self.times.of(settings)
        if not run.head and (settings.model.folder or any(recorded_answers(settings, run.origin.watched))):
            self._controller.ask(FirstAnswers(run=run.id))  # the answers shown until then were recorded elsewhere

    @Slot(object)
    def answer_asked(self, question: AnyQuestion) -> None:
        """Pass a question to the active run's model unless its file contains the answer."""
        run = self._workspace.run
        assert run is not None
        known = run.answer(question)
        if known is not None:
            self._workspace.answered.emit(question, known)
            return
        try:
            self.training.make_ready()
        except GrpoError as error:
            self._workspace.refused.emit(question, str(error))
        else:
            self._controller.ask(question)

    @Slot(object, object)
    def _on_answered(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        if isinstance(question, (FirstAnswers, UpdateTimeQuestion)):
            run = next((run for run in self._workspace.runs if run.id == question.run), None)
            if run is not None:
                self._take_before_training(run, answer)
        elif isinstance(answer, str):
            self._workspace.refused.emit(question, answer)
        else:
            self._workspace.answered.emit(question, answer)

    def _take_before_training(self, run: RunHandle, answer: AnyAnswer | str) -> None:
        """Store what a run's model reports before its first update.

        These are its answers and then, unless the user has pressed Run in the meantime, the duration of an update.
        """
        if isinstance(answer, FixedAnswers):
            run.first_answers = answer.tokens
            idle = self._controller.run_id == run.id and self._controller.state is not State.RUNNING
            if run.origin.settings.model.folder and idle:
                self._controller.ask(UpdateTimeQuestion(run=run.id))
        elif isinstance(answer, UpdateTime):
            run.update_time = answer
            if self.times is not None:
                self.times.keep(run.origin.settings, answer)
        self._workspace.request_frame()

    @Slot(str)
    def _on_notified(self, sentence: str) -> None:
        self._workspace.problem.emit(sentence, "info")

    def _next(self) -> int:
        """Return the next number for a run's title, skipping those that titles in the list already use."""
        self._count += 1
        while any(re.match(rf"Run {self._count}\b", run.title) for run in self._workspace.runs):
            self._count += 1
        return self._count


def _fits(run: RunHandle, settings: Settings) -> bool:
    return all(is_live(path) for path in run.origin.settings.differences(settings))
