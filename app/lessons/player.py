"""The player of lessons: trains the run for each step, scores predictions, and restores the user's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.lessons.interactives.base import Interactive
from app.lessons.prediction import Placed
from app.lessons.progress import LessonProgress
from app.lessons.reveal import CHANGE_SECONDS, FILM_SECONDS, Reveal
from app.lessons.saved_state import LessonDocks, LessonGuest, SavedState
from app.lessons.scorer import Scorer
from app.training.controller import Controller
from app.workspace.cursor import Stage
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.lessons import Lesson, LessonStep
from grpo_core.text import tr

TURNED_MS = 40
"""Minimum interval in milliseconds between two runs created while a knob is dragged."""


class LessonPlayer(QObject):
    """The player of the open lesson.

    Attributes:
        lesson: the open lesson; None between lessons.
        place: index of the step.
        turned: knobs that the user has turned in this step, dotted path -> value.
        placed: the predictions of this session, by step.
        problem: message explaining why a step cannot be shown, or an empty string.
        warned: whether the user tried to go on without a prediction; trying again skips it.
        interactive: the lesson's own picture, set by the page that shows it.
        reveal: the animation of an answer.
        finished: whether the last step is over and the page shows the ending.

    Signals:
        changed: emitted when any of these attributes changes.
        ended: emitted when the lesson is over, with a message to show, or an empty string.
        led_on: emitted when the user goes on from the ending to the next lesson.
    """

    led_on = Signal()
    changed = Signal()
    ended = Signal(str)

    def __init__(
        self,
        workspace: Workspace,
        run_manager: RunManager,
        controller: Controller,
        player: Player,
        layout: LessonDocks,
        progress: LessonProgress,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace, self._player = workspace, player
        self._guest = LessonGuest(workspace, run_manager, controller, player, layout)
        self._scorer = Scorer(workspace, progress)
        self.progress = progress
        self.lesson: Lesson | None = None
        self.place = 0
        self.turned: dict[str, Any] = {}
        self.placed: dict[int, Placed] = {}
        self.problem = ""
        self.interactive: Interactive | None = None
        self._runs = self._guest.runs
        self.answering = False
        self._target: LessonStep | None = None
        self.warned = self.finished = False
        self._film: tuple[int, int] | None = None
        self.reveal = Reveal(parent=self)
        self.reveal.played.connect(self._on_played)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(TURNED_MS)
        self._later.timeout.connect(self._show)
        workspace.frame.connect(self._on_frame)
        workspace.activated.connect(self._on_activated)
        controller.failed.connect(self._on_failed)

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> LessonStep:
        """The current step."""
        assert self.lesson is not None
        return self.lesson.steps[self.place]

    @property
    def covered(self) -> bool:
        """Whether the step is waiting for a prediction.

        Until one is placed or skipped, the page shows the previous step.
        """
        return self.step.predict is not None and self.place not in self.placed

    @property
    def seen(self) -> LessonStep:
        """The step that the page shows: the current one or, while a question is open, the one asked about."""
        step = self.step
        return step.opening if self.covered and step.opening is not None else step

    @property
    def hidden(self) -> frozenset[str]:
        """Parts of the interactive that would reveal an answer."""
        predict = self.step.predict
        asked = predict.hides if self.covered and predict is not None else ()
        return frozenset((*self.seen.hides, *asked))

    @property
    def changing(self) -> bool:
        """Whether the picture is changing into the one with the answer."""
        return self.reveal.playing and self._film is None

    @property
    def busy(self) -> bool:
        """Whether the run still has to reach the update of the step shown."""
        return self._target is not None

    @property
    def saved(self) -> SavedState | None:
        """Run, settings and cursor from before the lesson, to be restored after it. None between lessons."""
        return self._guest.saved

    def owns(self, run: RunHandle) -> bool:
        """Return whether ``run`` belongs to the lesson and is removed with it."""
        return run in self._runs

    # -- commands ------------------------------------------------------------------------------------------------------

    def open(self, lesson: Lesson, place: int = 0) -> None:
        """Open ``lesson`` at a step, counted from 0. Any other open lesson is closed first."""
        if self.lesson is None:
            self._guest.arrive()
        self._rest()
        self.lesson, self.placed = lesson, {}
        self._enter(min(max(place, 0), len(lesson.steps) - 1))

    def next(self) -> None:
        """Go to the next step. An open question is pointed out the first time, and skipped the second."""
        if self.lesson is None:
            return
        if self.reveal.playing:
            self.reveal.finish()
        elif self.covered:
            if self.warned:
                self.skip()
            else:
                self.warned = True
                self.changed.emit()
        elif self.place + 1 < len(self.lesson.steps):
            self._enter(self.place + 1)
        elif not self.finished:
            self.finished = True
            self.changed.emit()
        else:
            self.led_on.emit()

    def back(self) -> None:
        """Go to the previous step or, from the ending, to the last step."""
        if self.lesson is not None and self.finished:
            self.finished = False
            self.changed.emit()
        elif self.lesson is not None and self.place > 0:
            self._enter(self.place - 1)

    def predict(self, guess: float | None) -> None:
        """Place a prediction, or skip it, and let the run answer."""
        if self.lesson is not None and self.covered:
            opening, step = self.seen, self.step
            self.placed[self.place] = Placed(guess)
            asked = step.predict is not None and step.predict.start is not None
            self._film = (opening.update, step.update) if asked and step.update > opening.update else None
            self._show(reveals=True)

    def skip(self) -> None:
        """Skip the question and record that it was skipped."""
        self.predict(None)

    def turn(self, changes: Mapping[str, Any]) -> None:
        """Change knobs. The lesson's run starts again with the new values and the same seed.

        Raises:
            SettingsError: a value is not allowed; the message says what is, and nothing has changed.
        """
        if self.lesson is None:
            return
        wanted = {**self.turned, **changes}
        self.lesson.settings_of(self.seen, wanted)
        self.turned = wanted
        if not self._later.isActive():
            self._later.start()

    def reset(self) -> None:
        """Reset all knobs and everything dragged to the state of the step."""
        self.turned = {}
        if self.interactive is not None and self.lesson is not None:
            self.interactive.take(self.seen.state)
        self._show()

    def leave(self) -> None:
        """Leave the lesson and restore the user's run, settings, cursor and layout."""
        self._part("", self._guest.give_back)

    def keep(self) -> None:
        """Leave the lesson and continue its run in the full program. The user's own run stays in the list."""
        sentence = tr("You go on with the lesson's run. The run that you came from is in the list of runs.")
        self._part(sentence, partial(self._guest.go, keep=self._workspace.run))

    # -- moving to a step ----------------------------------------------------------------------------------------------

    def _enter(self, place: int) -> None:
        self.place, self.turned, self.warned, self.finished = place, {}, False, False
        self._show()

    @Slot()
    def _show(self, *, reveals: bool = False) -> None:
        """Bring the run to the step shown. ``reveals``: whether an answer is about to be revealed."""
        if self.lesson is None:
            return
        if not reveals:
            self._film = None
            self.reveal.finish()
        self.answering = reveals
        self.problem, self.warned = "", False
        self._target = self.seen  # from here on, nothing is scored until the run has reached it
        self._guest.layout.show(self.seen.panels, self._workspace.scale, picture=bool(self.lesson.interactive))
        try:
            settings = self.lesson.settings_of(self.seen, self.turned)
            name = tr("Lesson {number}").format(number=self.lesson.number)
            run = self._runs.show(settings, name) if not self.seen.recorded else self._runs.play(self.seen.recorded)
            if run.head < self.seen.update:
                self._runs.train(run, self.seen.update)
        except GrpoError as error:
            self.problem, self._target = str(error), None
        self._workspace.request_frame()
        self.changed.emit()

    @Slot()
    def _on_frame(self) -> None:
        target, run = self._target, self._workspace.run
        if target is None or run is None or run not in self._runs or run.head < target.update:
            return
        self._target = None
        self._player.rest()
        self._workspace.select(row=target.row)
        if target.explain is not None:
            self._workspace.show_explanation(target.explain)
        assert self.lesson is not None
        self._scorer.reach(self.lesson, self.place, covered=self.covered)
        if self.answering and self._film is not None:
            self.reveal.play(FILM_SECONDS)
        if not self.reveal.playing:
            self._film = None
            self._stand_at(target)
        self.changed.emit()

    def _stand_at(self, target: LessonStep) -> None:
        """Move the cursor to the position that the step defines."""
        self._workspace.move_to(target.update)
        if target.update:
            self._workspace.show_stage(Stage[target.stage.upper()], target.passed)

    def play_change(self) -> None:
        """Start the transition of the charts from the pictures stored by the page to the current ones."""
        if self.answering and self._film is None and not self.reveal.playing:
            self.reveal.play(CHANGE_SECONDS)
        self.answering = False

    @Slot()
    def _on_played(self) -> None:
        """Advance the cursor of a film by the clock."""
        if self.lesson is None:
            return
        if self._film is not None and self._target is None:
            first, last = self._film
            if self.reveal.playing:
                self._workspace.move_to(first + round((last - first) * self.reveal.share))
            else:
                self._film = None
                self._stand_at(self.seen)
        self._workspace.request_frame()
        self.changed.emit()

    def score(self) -> None:
        """Score an open prediction against the run once both the run and the interactive are ready."""
        placed = self.placed.get(self.place) if self.lesson is not None else None
        ready = self.interactive is None or self.interactive.ready
        waits = self.busy or not ready or bool(self.problem) or self._film is not None
        if self.lesson is None or placed is None or placed.value is not None or waits:
            return
        self.placed[self.place], self.problem = self._scorer.score(self.lesson, self.place, placed, self.interactive)
        self.changed.emit()

    # -- the end -------------------------------------------------------------------------------------------------------

    def _part(self, sentence: str, give_back: Callable[[], None]) -> None:
        """End the lesson and cancel everything requested for it."""
        if self.lesson is not None:
            self.lesson = None
            self._rest()
            give_back()
            self.changed.emit()
            self.ended.emit(sentence)

    def _rest(self) -> None:
        self._target, self.turned, self.problem = None, {}, ""
        self._film, self.answering, self.finished = None, False, False
        self.reveal.finish()
        self._later.stop()

    @Slot()
    def _on_activated(self) -> None:
        """End the lesson because another run was opened or the lesson's own was closed. The active run stays shown."""
        run = self._workspace.run
        if not self._runs.switching and run is not None and run not in self._runs:
            self._part(tr("The lesson has ended, because another run is shown."), self._guest.go)

    @Slot(object)
    def _on_failed(self, failure: object) -> None:
        if self._target is not None:
            self._target, self.problem = None, str(getattr(failure, "sentence", failure))
            self.changed.emit()
