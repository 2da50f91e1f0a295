"""The player of lessons: trains the run for each step, scores predictions, and restores the user's state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.prediction import Placed
from app.teaching.lessons.progress import LessonProgress, PredictionEntry
from app.teaching.lessons.reveal import CHANGE_SECONDS, FILM_SECONDS, Reveal
from app.teaching.lessons.runs import LessonDocks, LessonRuns
from app.training.controller import Controller
from app.workspace.cursor import Stage
from app.workspace.player import Player
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson, LessonStep, answered, close, in_words, right
from grpo_core.text import tr

TURNED_MS = 40
"""Minimum interval in milliseconds between two runs created while a knob is dragged."""


class Section(Enum):
    """Sections of the page next to the picture."""

    STEP = "step"
    WARNING = "step, with the request to predict first"
    ENDING = "ending"


class Phase(Enum):
    """Progress of the run and the picture towards the step shown."""

    COMING = "the run has not yet reached it"
    ANSWER_COMING = "the same, after a prediction"
    FILM = "the cursor goes through the updates up to the answer"
    ANSWERED = "the picture may change into that of the answer"
    CHANGING = "it changes"
    SHOWN = "shown"


class LessonPlayer(QObject):
    """The player of the open lesson.

    Attributes:
        place: index of the step.
        turned: dotted path -> value of the knobs that the user has turned in this step.
        placed: step -> prediction made in this session.
        problem: a message that explains why a step cannot be shown, or an empty string.
        section: the section that the page shows. In the warning, continuing without a prediction skips the question.
        interactive: the lesson's own picture, set by the page that shows it.
        runs: the runs of the lesson, and the state to which the user returns.

    Signals:
        changed: emitted when any of these attributes changes.
        ended: emitted when the lesson is over, with a message to show, or an empty string.
        led_on: emitted when the user continues from the ending to the next lesson.
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
        self.runs = LessonRuns(workspace, run_manager, controller, player, layout)
        self.progress = progress
        self.lesson: Lesson | None = None
        self.place = 0
        self.turned: dict[str, Any] = {}
        self.placed: dict[int, Placed] = {}
        self.problem = ""
        self.interactive: Interactive | None = None
        self.section, self.phase = Section.STEP, Phase.SHOWN
        self.reveal = Reveal(parent=self)
        self.reveal.played.connect(self._on_played)
        self._later = Timer(self, self._show, TURNED_MS)
        workspace.frame.connect(self._on_frame)
        workspace.activated.connect(self._on_activated)
        controller.failed.connect(self._on_failed)

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> LessonStep:
        assert self.lesson is not None
        return self.lesson.steps[self.place]

    @property
    def covered(self) -> bool:
        """Whether the step is waiting for a prediction. Until there is one, the page shows the step's opening."""
        return self.step.predict is not None and self.place not in self.placed

    @property
    def shows_run(self) -> bool:
        """Whether the picture or a panel next to it shows the lesson's run."""
        from app.teaching.lessons.interactives.table import INTERACTIVES

        picture = INTERACTIVES.get(self.lesson.interactive) if self.lesson is not None else None
        return picture is None or picture.shows_run or bool(self.seen.panels)

    @property
    def seen(self) -> LessonStep:
        """The step that the page shows: the current one or, while its question is open, its opening."""
        step = self.step
        return step.opening if self.covered and step.opening is not None else step

    @property
    def hidden(self) -> frozenset[str]:
        """Parts of the interactive that would reveal an answer."""
        predict = self.step.predict
        asked = predict.hides if self.covered and predict is not None else ()
        return frozenset((*self.seen.hides, *asked))

    @property
    def finished(self) -> bool:
        return self.section is Section.ENDING

    @property
    def busy(self) -> bool:
        """Whether the run has not yet reached the update of the step shown."""
        return self.phase in (Phase.COMING, Phase.ANSWER_COMING)

    # -- commands ------------------------------------------------------------------------------------------------------

    def open(self, lesson: Lesson, place: int = 0) -> None:
        """Open ``lesson`` at a step, counted from 0. Any other open lesson is closed first."""
        if self.lesson is None:
            self.runs.arrive()
        self._rest()
        self.lesson, self.placed = lesson, {}
        self._enter(min(max(place, 0), len(lesson.steps) - 1))

    def next(self) -> None:
        """Go to the next step, or from the last one to the ending.

        If a question is open, the first call asks for a prediction, and the second skips the question.
        """
        if self.lesson is None:
            return
        if self.reveal.playing:
            self.reveal.finish()
        elif self.covered:
            if self.section is Section.WARNING:
                self.skip()
            else:
                self._turn_to(Section.WARNING)
        elif self.place + 1 < len(self.lesson.steps):
            self._enter(self.place + 1)
        elif not self.finished:
            self._turn_to(Section.ENDING)
        else:
            self.led_on.emit()

    def back(self) -> None:
        """Go to the previous step or, from the ending, to the last step."""
        if self.lesson is not None and self.finished:
            self._turn_to(Section.STEP)
        elif self.lesson is not None and self.place > 0:
            self._enter(self.place - 1)

    def predict(self, guess: float | None) -> None:
        """Record a prediction, or None if the question is skipped, and show the answer."""
        if self.lesson is not None and self.covered:
            self.placed[self.place] = Placed(guess)
            self._go(Phase.ANSWER_COMING)

    def skip(self) -> None:
        """Skip the question and record that it was skipped."""
        self.predict(None)

    def turn(self, changes: Mapping[str, Any]) -> None:
        """Turn knobs. The lesson's run starts again with the new values and the same seed.

        Raises:
            SettingsError: a value is not allowed. The message says which values are, and nothing has changed.
        """
        if self.lesson is None:
            return
        wanted = {**self.turned, **changes}
        self.lesson.settings_of(self.seen, wanted)
        self.turned = wanted
        self._later.start_if_idle()

    def reset(self) -> None:
        """Reset all knobs and everything that was dragged to the state of the step."""
        self.turned = {}
        if self.interactive is not None and self.lesson is not None:
            self.interactive.take(self.seen.state)
        self._show()

    def leave(self) -> None:
        """Leave the lesson and restore the user's run, settings, cursor and layout."""
        self._part("", self.runs.give_back)

    def keep(self) -> None:
        """Leave the lesson and continue its run in the full program. The user's previous run stays in the list."""
        sentence = tr("You continue with the lesson's run. The run that you came from is in the list of runs.")
        self._part(sentence, partial(self.runs.go, keep=self._workspace.run))

    # -- moving to a step ----------------------------------------------------------------------------------------------

    def _enter(self, place: int) -> None:
        self.place, self.turned, self.section = place, {}, Section.STEP
        self._show()

    def _turn_to(self, section: Section) -> None:
        self.section = section
        self.changed.emit()

    @Slot()
    def _show(self) -> None:
        """Bring the run to the step shown."""
        if self.lesson is not None:
            self._go(Phase.COMING)

    def _go(self, phase: Phase) -> None:
        """Bring the run to the step shown and start ``phase``."""
        assert self.lesson is not None
        self.phase = phase  # nothing is scored before the run has reached the step
        self.reveal.finish()
        self.problem = ""
        if self.section is Section.WARNING:
            self.section = Section.STEP
        self.runs.layout.show(
            self.seen.panels, self._workspace.scale, picture=bool(self.lesson.interactive), run=self.shows_run
        )
        try:
            settings = self.lesson.settings_of(self.seen, self.turned)
            name = tr("Lesson {number}").format(number=self.lesson.number)
            run = self.runs.show(settings, name) if not self.seen.recorded else self.runs.play(self.seen.recorded)
            if run.head < self.seen.update:
                self.runs.train(run, self.seen.update)
        except GrpoError as error:
            self.problem, self.phase = str(error), Phase.SHOWN
        self._workspace.request_frame()
        self.changed.emit()

    @Slot()
    def _on_frame(self) -> None:
        run = self._workspace.run
        if not self.busy or run is None or run not in self.runs or run.head < self.seen.update:
            return
        target, answers = self.seen, self.phase is Phase.ANSWER_COMING
        self.phase = Phase.ANSWERED if answers else Phase.SHOWN
        self._player.rest()
        self._workspace.select(row=target.row, token=target.token)
        if target.explain is not None:
            self._workspace.show_explanation(target.explain)
        assert self.lesson is not None
        last = self.place + 1 == len(self.lesson.steps) and not self.covered
        self._warn(self.progress.reach(self.lesson.id, self.place + 1, last))
        if answers and len(self._film) > 1 and self.reveal.moves:
            self.phase = Phase.FILM
            self.reveal.play(FILM_SECONDS)
        else:
            self._show_place_of(target)
        self.changed.emit()

    @property
    def _film(self) -> range:
        """The updates from the opening of the question to its answer. Empty if the question has no starting update."""
        predict, opening = self.step.predict, self.step.opening
        if predict is None or predict.start is None or opening is None:
            return range(0)
        return range(opening.update, self.step.update + 1)

    def _show_place_of(self, target: LessonStep) -> None:
        self._workspace.move_to(target.update)
        if target.update:
            self._workspace.show_stage(Stage[target.stage.upper()], target.passed)

    def play_change(self) -> None:
        """Start the transition from the pictures that the page has stored to the current ones."""
        if self.phase is Phase.ANSWERED:
            self.phase = Phase.CHANGING if self.reveal.moves else Phase.SHOWN
            self.reveal.play(CHANGE_SECONDS)

    @Slot()
    def _on_played(self) -> None:
        if self.lesson is None:
            return
        if self.phase is Phase.FILM and self.reveal.playing:
            self._workspace.move_to(self._film[round((len(self._film) - 1) * self.reveal.share)])
        elif self.phase is Phase.FILM:
            self.phase = Phase.ANSWERED
            self._show_place_of(self.seen)
        elif self.phase is Phase.CHANGING and not self.reveal.playing:
            self.phase = Phase.SHOWN
        self._workspace.request_frame()
        self.changed.emit()

    def score(self) -> None:
        """Score an unscored prediction once both the run and the interactive are ready."""
        placed = self.placed.get(self.place) if self.lesson is not None else None
        ready = self.interactive is None or self.interactive.ready
        waits = self.busy or not ready or bool(self.problem) or self.phase is Phase.FILM
        if self.lesson is None or placed is None or placed.value is not None or waits:
            return
        step, predict, run, value = self.step, self.step.predict, self._workspace.run, math.nan
        assert predict is not None and run is not None
        check = self.interactive.answer if self.interactive is not None else lambda check: math.nan
        try:
            value = answered(predict.answer, step.update, run.origin, run.step, check)
        except (GrpoError, IndexError, KeyError) as error:
            self.problem = tr("The prediction cannot be scored: {error}").format(error=error)
        good = placed.guess is not None and right(predict, placed.guess, value)
        near = placed.guess is not None and close(predict, placed.guess, value)
        entry = PredictionEntry(
            when=datetime.now().isoformat(timespec="seconds"),
            lesson=self.lesson.id,
            step=self.place + 1,
            ask=predict.ask,
            kind=predict.kind,
            guess=in_words(predict, placed.guess),
            value=value,
            right=good,
            skipped=placed.guess is None,
        )
        self.placed[self.place] = replace(placed, value=value, right=good, close=near)
        self._warn(self.progress.add(entry))
        self.changed.emit()

    def _warn(self, sentence: str | None) -> None:
        if sentence:
            self._workspace.problem.emit(sentence, "warning")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _part(self, sentence: str, give_back: Callable[[], None]) -> None:
        """End the lesson, call ``give_back``, and report ``sentence`` to the user."""
        if self.lesson is not None:
            self.lesson = None
            self._rest()
            give_back()
            self.changed.emit()
            self.ended.emit(sentence)

    def _rest(self) -> None:
        self.section, self.phase, self.turned, self.problem = Section.STEP, Phase.SHOWN, {}, ""
        self.reveal.finish()
        self._later.stop()

    @Slot()
    def _on_activated(self) -> None:
        """End the lesson if a run that does not belong to it has become active. That run stays active."""
        run = self._workspace.run
        if not self.runs.switching and run is not None and run not in self.runs:
            self._part(tr("The lesson has ended, because another run is shown."), self.runs.go)

    @Slot(object)
    def _on_failed(self, failure: object) -> None:
        if self.busy:
            self.phase, self.problem = Phase.SHOWN, str(getattr(failure, "sentence", failure))
            self.changed.emit()
