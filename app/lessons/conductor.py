"""Who gives a lesson: walks its steps, trains its run that far, scores predictions, gives the user's place back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.lessons.former import Former
from app.lessons.interactive import Interactive
from app.lessons.layout import LessonLayout
from app.lessons.prediction import Placed, in_words
from app.lessons.progress import Entry, Progress
from app.lessons.runs import LessonRuns
from app.training.controller import Controller
from app.workspace.cursor import Stage
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.session import Session
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.lessons import Lesson, LessonStep, answered, right

TURNED_MS = 40
"""A knob that is being dragged makes a run of its own at most this often."""


class Conductor(QObject):
    """The lesson that is being given.

    Attributes:
        lesson: it; None between lessons.
        place: the step, counted from 0.
        turned: knobs that the user has turned in this step, dotted path -> value.
        placed: the predictions of this sitting, by step.
        problem: why a step cannot be shown, in a sentence, or empty.
        interactive: the lesson's own picture, set by the page that shows it.

    Signals:
        changed: any of these.
        ended: the lesson is over; the sentence to say, or empty.
    """

    changed = Signal()
    ended = Signal(str)

    def __init__(
        self, workspace: Workspace, session: Session, controller: Controller, player: Player, layout: LessonLayout,
        progress: Progress, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._workspace, self._session, self._player, self._layout = workspace, session, player, layout
        self._controller = controller
        self.progress = progress
        self.lesson: Lesson | None = None
        self.place = 0
        self.turned: dict[str, Any] = {}
        self.placed: dict[int, Placed] = {}
        self.problem = ""
        self.interactive: Interactive | None = None
        self._runs = LessonRuns(workspace, session, controller)
        self._former: Former | None = None
        self._target: LessonStep | None = None
        self._warned = False
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(TURNED_MS)
        self._later.timeout.connect(self._show)
        workspace.frame.connect(self._on_frame)
        workspace.activated.connect(self._on_activated)
        controller.failed.connect(self._on_failed)
        controller.closed.connect(self._runs.sweep)

    # -- what is shown -------------------------------------------------------------------------------------------------

    @property
    def step(self) -> LessonStep:
        """The step that is told."""
        assert self.lesson is not None
        return self.lesson.steps[self.place]

    @property
    def covered(self) -> bool:
        """Whether the step waits for a prediction; till then the step before is what is to be seen."""
        return self.step.predict is not None and self.place not in self.placed

    @property
    def seen(self) -> LessonStep:
        """The step that is to be seen."""
        assert self.lesson is not None
        return self.lesson.steps[self.place - 1] if self.covered else self.step

    @property
    def busy(self) -> bool:
        """Whether its run is still on the way to the update that is to be seen."""
        return self._target is not None

    @property
    def warned(self) -> bool:
        """Whether somebody went on without a prediction; doing so once more skips it."""
        return self._warned

    # -- what people press ---------------------------------------------------------------------------------------------

    def open(self, lesson: Lesson) -> None:
        """Begin ``lesson``; another one that is being given makes room for it."""
        if self.lesson is None:
            self._former = Former.of(self._workspace)
            self._player.pause()
            self._controller.set_breakpoints(())  # the user's are for the user's runs
        else:
            self._forget()
        self.lesson, self.place, self.placed = lesson, 0, {}
        self._enter(0)

    def next(self) -> None:
        """One step further. A question that stands open is asked for once, and then skipped."""
        if self.lesson is None:
            return
        if self.covered:
            if self._warned:
                self.skip()
            else:
                self._warned = True
                self.changed.emit()
        elif self.place + 1 < len(self.lesson.steps):
            self._enter(self.place + 1)
        else:
            self.leave()

    def back(self) -> None:
        """The step before."""
        if self.lesson is not None and self.place > 0:
            self._enter(self.place - 1)

    def predict(self, guess: float) -> None:
        """Place a prediction; the run answers."""
        if self.lesson is not None and self.covered:
            self.placed[self.place] = Placed(guess)
            self._show()

    def skip(self) -> None:
        """Leave the question unanswered; it is remembered as skipped."""
        if self.lesson is not None and self.covered:
            self.placed[self.place] = Placed(None)
            self._show()

    def turn(self, changes: Mapping[str, Any]) -> None:
        """Turn a knob: the lesson's run begins again under it, with the same seed.

        Raises:
            SettingsError: what was wrong and what is allowed; nothing has changed.
        """
        if self.lesson is None:
            return
        wanted = {**self.turned, **changes}
        self.lesson.settings_at(self._seen_place, wanted)
        self.turned = wanted
        if not self._later.isActive():
            self._later.start()

    def reset(self) -> None:
        """Every knob, and whatever was dragged, as the step has it."""
        self.turned = {}
        if self.interactive is not None and self.lesson is not None:
            self.interactive.take(self.seen.state)
        self._show()

    def leave(self) -> None:
        """Give the user's run, settings, cursor and layout back."""
        if self.lesson is None:
            return
        self.lesson = None
        self._forget()
        if self._former is not None:
            self._runs.switching = True
            self._former.give_back(self._workspace, self._session)
        self._end("")

    def keep(self) -> None:
        """Go on with the lesson's run in the whole program; the user's own stays in the list."""
        if self.lesson is None:
            return
        self.lesson = None
        self._forget()
        sentence = "You go on with the lesson's run. The run that you came from is in the list of runs."
        self._end(sentence, keep=self._workspace.run)

    # -- how it gets there ---------------------------------------------------------------------------------------------

    @property
    def _seen_place(self) -> int:
        return self.place - 1 if self.covered else self.place

    def _enter(self, place: int) -> None:
        self.place, self.turned, self._warned = place, {}, False
        self._show()

    @Slot()
    def _show(self) -> None:
        """Bring the run to the step that is to be seen."""
        if self.lesson is None:
            return
        self.problem, self._warned = "", False
        self._layout.show(self.seen.panels, self._workspace.scale)
        try:
            run = self._runs.show(
                self.lesson.settings_at(self._seen_place, self.turned), f"Lesson {self.lesson.number}"
            )
            self._target = self.seen
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
        self._workspace.move_to(target.update)
        if target.update:
            self._workspace.show_stage(Stage[target.stage.upper()], target.passed)
        self._workspace.select(row=target.row)
        if target.explain is not None:
            self._workspace.explain(target.explain)
        self._remember()
        self.changed.emit()

    def _remember(self) -> None:
        assert self.lesson is not None
        last = self.place + 1 == len(self.lesson.steps) and not self.covered
        self._say(self.progress.reach(self.lesson.id, self.place + 1, last))

    def score(self) -> None:
        """Hold an open prediction against the run, once both the run and the interactive have arrived."""
        placed = self.placed.get(self.place) if self.lesson is not None else None
        ready = self.interactive is None or self.interactive.ready
        if placed is None or placed.value is not None or self.busy or not ready or self.problem:
            return
        assert self.lesson is not None and self.step.predict is not None
        predict, value = self.step.predict, self._answer()
        good = placed.guess is not None and right(predict, placed.guess, value)
        self.placed[self.place] = replace(placed, value=value, right=good)
        entry = Entry(
            when=datetime.now().isoformat(timespec="seconds"), lesson=self.lesson.id, step=self.place + 1,
            ask=predict.ask, kind=predict.kind, guess=in_words(predict, placed.guess), value=value, right=good,
            skipped=placed.guess is None,
        )  # fmt: skip
        self._say(self.progress.add(entry))
        self.changed.emit()

    def _answer(self) -> float:
        run, predict = self._workspace.run, self.step.predict
        assert run is not None and predict is not None
        check = self.interactive.answer if self.interactive is not None else _nothing
        try:
            return answered(predict.answer, self.step.update, run.origin, run.step, check)
        except (GrpoError, IndexError, KeyError) as error:
            self.problem = f"The prediction cannot be scored: {error}"
            return float("nan")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Nothing is wanted any more."""
        self._target, self.turned, self.problem = None, {}, ""
        self._later.stop()

    def _end(self, sentence: str, keep: RunHandle | None = None) -> None:
        """The lesson's runs go, but for the one to ``keep``, and the window is as it was."""
        self._runs.clear(keep=keep)
        self._runs.switching = False
        self._former = None
        self._controller.set_breakpoints(self._workspace.breakpoints.all)
        self._layout.give_back()
        self.changed.emit()
        self.ended.emit(sentence)

    @Slot()
    def _on_activated(self) -> None:
        """Another run was opened or the lesson's was closed: the lesson is over, and that run stays."""
        run = self._workspace.run
        if self.lesson is None or self._runs.switching or run is None or run in self._runs:
            return
        self.lesson = None
        self._forget()
        self._end("The lesson has ended, because another run is shown.")

    @Slot(object)
    def _on_failed(self, failure: object) -> None:
        if self._target is not None:
            self._target, self.problem = None, str(getattr(failure, "sentence", failure))
            self.changed.emit()

    def _say(self, sentence: str | None) -> None:
        if sentence:
            self._workspace.problem.emit(sentence, "warning")


def _nothing(check: str) -> float:
    return float("nan")
