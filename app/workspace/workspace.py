"""The model behind the window: runs, cursor and selection. Panels read its ``view`` and call its methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.jobs.computed_on import ComputedOn
from app.jobs.jobs import Jobs
from app.theme.tokens import Theme
from app.workspace.approach import Approach
from app.workspace.breakpoints import Breakpoints
from app.workspace.cursor import Cursor, Selection, Stage, at_selection, in_pass
from app.workspace.editing import Editing
from app.workspace.frame import FrameTimer
from app.workspace.run_handle import RunHandle
from app.workspace.step_view import StepViews
from app.workspace.trials import Trials
from app.workspace.view import View
from app.workspace.window_mode import WindowMode
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.explain import Quantity
from grpo_core.foreign.readers import Readers
from grpo_core.progress import Progress
from grpo_core.record import Step


class Workspace(QObject):
    """The state of one window.

    Attributes:
        runs: all open runs, newest last.
        training: the run that the learner is working on.
        following: whether the cursor moves with the head.
        selection: the completion, token and action marked in all panels.
        quantity: the number being explained.
        editing: the settings of the next update, with undo.
        progress: progress of the update being computed; None if it is quick or there is none.
        watched_group: the group whose completions are reported while they are sampled.
        readers: the processes that read files of foreign origin.
        shared: objects that a part of the program shares with its panels, by type; each has a method ``close``.
        approach: prepares updates that are slow to read before the cursor moves there.
        frame_due: whether anything has changed since the last frame began.
        timer: the timer of the frames.
        divided: whether the frame that is being drawn lets input be handled between its parts.

    Signals:
        frame: emitted at most 60 times per second, when the panels have redrawn what has changed.
        drawing: emitted when a frame begins, with a list to which each panel adds the function that draws it.
        pull: emitted before each frame, to load new updates.
        drawn: emitted when the frame is on the screen.
        activated: emitted when another run becomes the active one.
        explained: emitted when the user has requested the explanation of a number.
        problem: emitted with a message for the user and its severity ("info", "warning", "error").
        asked: emit it with a question (:data:`grpo_core.questions.AnyQuestion`) for the model of the active run. Either
            ``answered`` or ``refused`` is emitted later.
        answered: emitted with the question and its answer.
        refused: emitted with the question and a message explaining why it cannot be answered.
    """

    frame = Signal()
    drawing = Signal(object)  # a list of Signal(list) would be a copy
    pull = Signal()
    drawn = Signal()
    activated = Signal()
    explained = Signal()
    problem = Signal(str, str)
    asked = Signal(object)
    answered = Signal(object, object)
    refused = Signal(object, str)

    def __init__(
        self,
        settings: Settings,
        theme: Theme,
        scale: float = 1.0,
        parent: QObject | None = None,
        *,
        jobs: Jobs | None = None,
        readers: Readers | None = None,
    ) -> None:
        super().__init__(parent)
        self.jobs = Jobs() if jobs is None else jobs
        self.computed_on = ComputedOn(self.jobs, self)
        self.readers = Readers(own_process=False) if readers is None else readers
        self.mode = WindowMode(self)
        self.shared: dict[type, Any] = {}
        self.runs: list[RunHandle] = []
        self.run: RunHandle | None = None
        self.training: RunHandle | None = None
        self.cursor = Cursor()
        self.following = True
        self.selection = Selection()
        self.quantity: Quantity | None = None
        self.running = False
        self.progress: Progress | None = None
        self.watched_group = 0
        self.theme = theme
        self.scale = scale
        self.editing = Editing(settings, self)
        self.breakpoints = Breakpoints(self)
        self.trials = Trials(self.request_frame)
        self.editing.changed.connect(self.request_frame)
        self.approach = Approach(self)
        self.approach.reached.connect(self._on_reached)
        self._views = StepViews()
        self._view: View | None = None
        self._problem: tuple[str, str] | None = None
        """A message about the current update, with its severity, kept until the frame that reports it begins."""
        self.frame_due = False
        self.divided = False
        self._place: object = None
        """The :attr:`View.place` of the last frame."""
        self._drawing: View | None = None
        """The view of the frame that is being drawn; None between frames."""
        self.timer = FrameTimer(self)
        self.timer.tick.connect(self._on_tick)
        self.timer.drawn.connect(self.drawn)

    # -- reading the state ---------------------------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """The current state, built once per frame. Reading it has no side effects."""
        if self._view is None:
            self._view = self._build()
        return self._view

    @property
    def drawn_view(self) -> View:
        """The view that panels draw: that of the frame being drawn, even if something has changed since it began,
        otherwise the current one.
        """
        return self._drawing or self.view

    def _build(self) -> View:
        assert self.run is not None, "a window always has an active run"
        cursor, step, self._problem = self._found(self.run)
        passed = cursor.pass_of(step.passes) if step else 0
        prepared = None if step is None else self.run.prepared(step.step)
        running = self.running and (self.training is None or self.training is self.run)
        return View(
            run=self.run,
            head=self.run.head,
            step=self._views.get(self.run.id, self.run.origin, step, cursor.stage, passed, prepared),
            cursor=cursor,
            following=self.following,
            selection=self.selection,
            quantity=self.quantity,
            next_settings=self.editing.settings,
            wanted=self.editing.wanted,
            running=running,
            theme=self.theme,
            scale=self.scale,
            locked=self.editing.locked,
            hidden=self.editing.hidden,
            trials=self.trials.of(self.run, self.runs, growing=self.running),
            progress=self.progress if self.run is self.training else None,
        )

    def _found(self, run: RunHandle) -> tuple[Cursor, Step | None, tuple[str, str] | None]:
        """Return the cursor, its update, and a message with its severity, if any.

        If the update has been thinned out, the nearest recorded one replaces it, and the message says so.
        """
        try:
            return self.cursor, run.step(self.cursor.step), None
        except RunFileError as error:
            near, said = self.cursor.at(run.kept(self.cursor.step)), str(error)
        if near.step == self.cursor.step:
            return self.cursor, None, (said, "error")
        try:
            return near, run.step(near.step), (said, "info")
        except RunFileError as error:
            return self.cursor, None, (str(error), "error")

    # -- changing the state --------------------------------------------------------------------------------------------

    def move_to(self, step: float) -> None:
        """Show update ``step``, rounded to a whole one and fully revealed. If it is the head, the cursor then follows
        new updates.

        If that update was thinned out, show the next recorded one in the direction of movement.
        """
        head = self.run.head if self.run else 0
        first = 1 if head and self.run is not None and self.run.is_recorded else 0  # before 1 nothing is known of these
        step = min(max(round(step), first), head)
        if self.run is not None and self.run.thinned:
            step = self.run.kept(step, forwards=step > self.cursor.step)
        self.following = step == head
        self._go(self.cursor.at(step))

    def _go(self, cursor: Cursor) -> None:
        """Move the cursor, immediately or as soon as the update there can be shown without blocking the window."""
        if self.run is None or not self.approach.lead(self.run, cursor):
            self.cursor = cursor
        self.request_frame()

    @Slot(object)
    def _on_reached(self, cursor: Cursor) -> None:
        if self.approach.run is not self.run:
            return
        if cursor.step == self.cursor.step:
            self._reveal(cursor)
        else:
            self.cursor = cursor
            self.request_frame()

    def follow(self) -> None:
        self.move_to(self.run.head if self.run else 0)

    def show_stage(self, stage: Stage, passed: int = -1, progress: float = 1.0, *, quick: bool = False) -> None:
        """Reveal the update under the cursor up to ``stage`` (and pass ``passed``), with its film at ``progress``.

        The explained number moves to that pass too. ``quick`` marks a film too short for panels to rearrange
        themselves for a stage.
        """
        goal = self.approach.goal
        step = self.cursor.step if goal is None else goal.step
        cursor = Cursor(step=step, stage=stage, passed=passed, progress=progress, quick=quick)
        if self.run is None or not self.approach.lead(self.run, cursor):
            self._reveal(cursor)

    def _reveal(self, cursor: Cursor) -> None:
        """Move the cursor, and move the explained number to the cursor's pass."""
        before = self.view.step
        self.cursor = cursor
        if self.quantity is not None and before.step is not None:
            after = self.cursor.pass_of(before.step.passes)
            self.quantity = in_pass(self.quantity, before.passed, after)
        self.request_frame()

    def select(self, *, row: int | None = None, token: int = 0, action: int | None = None) -> None:
        """Mark a completion (and its token) or an action in every panel.

        If a number of another completion or action is being explained, the corresponding number of the marked one
        replaces it.
        """
        self.selection = Selection(row=row, token=token, action=action)
        if self.quantity is not None:
            self.quantity = at_selection(self.quantity, self.selection)
        self.request_frame()

    def select_token(self, row: int, token: int) -> None:
        self.select(row=row, token=token, action=self._action_at(row, token))

    def explain(self, quantity: Quantity) -> None:
        """Explain a number at the user's request: select its completion and bring the Explain panel to the front."""
        self.show_explanation(quantity)
        self.explained.emit()

    def show_explanation(self, quantity: Quantity) -> None:
        """Explain a number in the Explain panel without bringing the panel to the front. Its completion is selected."""
        self.quantity = quantity
        row, token = quantity.row, quantity.token or 0
        if row is not None and (row, token) != (self.selection.row, self.selection.token):
            self.selection = Selection(row=row, token=token, action=self._action_at(row, token))
        self.request_frame()

    def _action_at(self, row: int, token: int) -> int | None:
        """Return the token at this position of the current update, or None if there is none."""
        step = self.view.step.step
        known = step is not None and row < step.tokens.shape[0] and token < step.tokens.shape[1]
        return int(step.tokens[row, token]) if step is not None and known else None

    def set_look(self, theme: Theme, scale: float) -> None:
        self.theme, self.scale = theme, scale
        self.request_frame()

    # -- runs ------------------------------------------------------------------------------------------------------

    def activate(self, run: RunHandle, *, keep_edits: bool = False) -> None:
        """Show ``run`` at its head.

        ``keep_edits`` keeps the undo history, because an edit or its undo leads to this run.
        """
        if run not in self.runs:
            self.runs.append(run)
        if self.run is not None and not self.run.is_recorded:
            self.run.next_settings = self.editing.settings
        self.run = run
        self.selection = Selection()
        self.quantity = None
        if run.is_recorded:  # the controls keep the settings of a run that can be trained here
            self.editing.restart(self.editing.settings)
        else:
            self.editing.restart(run.next_settings or run.settings_at(run.head + 1), keep_edits=keep_edits)
        self.cursor = Cursor()
        self.approach.drop()
        self.follow()
        self.activated.emit()

    def remove(self, run: RunHandle) -> None:
        self.runs.remove(run)
        run.close_file()
        if run is self.run and self.runs:
            self.activate(self.runs[-1])

    def head_moved(self) -> None:
        if self.following and self.run is not None:
            self._go(self.cursor.at(self.run.head))
        self.request_frame()

    # -- frames ----------------------------------------------------------------------------------------------------

    @Slot()
    def request_frame(self) -> None:
        """Request that every visible panel be drawn with the next frame."""
        self.frame_due, self._view = True, None
        self.timer.request()

    def set_running(self, running: bool) -> None:
        """Set whether frames continue automatically because updates may arrive."""
        self.running = running
        self.timer.set_live(running)
        self.request_frame()

    @Slot()
    def _on_tick(self) -> None:
        """Draw what has changed since the last tick, if anything. Another update of a run that goes on is drawn in
        parts.
        """
        self.timer.complete()
        self.pull.emit()
        if self.run is not None and self.frame_due:
            self.frame_due, self._view = False, None
            self.cursor, problem = self.view.cursor, self._problem
            if problem is not None:
                self.problem.emit(*problem)
            self.divided = self.running and self.view.place != self._place
            self._drawing, panels = self.view, list[Callable[[], object]]()
            self._place = self._drawing.place
            self.drawing.emit(panels)
            self.add_parts([*panels, self._end_drawing])
            if not self.divided:
                self.timer.complete()

    def _end_drawing(self) -> None:
        self.frame.emit()  # receivers can add parts
        self.add_parts([self._forget_drawing])

    def _forget_drawing(self) -> None:
        self._drawing, self.divided = None, False

    def add_parts(self, parts: Iterable[Callable[[], object]]) -> None:
        self.timer.add_parts(partial(self._do, part) for part in parts)

    def _do(self, part: Callable[[], object]) -> None:
        """Do a part with the view of its frame, whatever has changed since the frame began."""
        self._view = self._drawing
        try:
            part()
        finally:
            if self.frame_due:
                self._view = None

    def close(self) -> None:
        """Stop the frames, close all files, and end the processes of experiments."""
        self.timer.stop()
        self.approach.drop()
        self.approach.leave()
        for shared in self.shared.values():
            shared.close()
        self.jobs.close()
        self.readers.close()
        for run in self.runs:
            run.close_file()
