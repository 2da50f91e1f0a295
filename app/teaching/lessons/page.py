"""The page of a lesson: a question, a picture with a knob or two, a short text, a prediction, and the next step."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QWidget

from app.boxes import across, down, plain_scroll_area
from app.clock import Timer, eased
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.morph import Morph
from app.teaching.lessons.page_parts import Ending, Knobs, LessonBar, LessonText, homework_button
from app.teaching.lessons.player import LessonPlayer, Phase
from app.teaching.lessons.prediction import Placed, PredictionBox
from app.theme.labels import Label
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons import Lesson, spoken
from grpo_core.text import tr

PICTURE, WORDS = 63, 37
"""Shares of the page's width for the picture and the text, in percent."""
PARTLY_HIDDEN = tr("Part of this picture is hidden until a question is answered.")
STAGE_TEXT, STAGE_QUESTION = 1.9, 2.2
"""Font size factors when presenting on a screen of 1080 lines, for the roles "body" (13 pixels) and "number" (20)."""


class LessonPage(QWidget):
    """The page that shows the current step of the lesson player.

    Attributes:
        handed_out: ids of the lessons from a session whose answers can be saved as homework.
        interactive: the lesson's own picture; None if it has none.
        following: the next lesson, offered at the end; None after the last one.
        stage: whether the lesson is being presented: one question, one picture, one number, and nothing else.
        filmed: whether the page is being filmed, without buttons, knobs or invitations.

    Signals:
        redraw: emitted when something has changed between frames.
        guess_shown: emitted with the predicted probability of the likeliest action (None before one is chosen),
            which the policy panel next to the lesson should show, and whether it can be dragged there.
    """

    redraw = Signal()
    guess_shown = Signal(object, bool)

    def __init__(self, workspace: Workspace, lesson_player: LessonPlayer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._lesson_player = workspace, lesson_player
        self.following: Lesson | None = None
        self.handed_out: frozenset[str] = frozenset()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Lesson"))
        self._shown: tuple[str, int, bool, bool] | None = None
        self._shown_result: Placed | None = None
        self._guess_beside: tuple[float | None, bool] = None, False
        self._result = Timer(self, self._on_result)
        self.text, self.knobs, self.prediction = LessonText(), Knobs(), PredictionBox()
        self.interactive: Interactive | None = None
        self._morph: Morph | None = None
        self.bar = LessonBar(lesson_player)
        self.stage = self.filmed = False
        self.title, self.question, self.count = Label(wraps=True), Label(wraps=True), Label(name="muted")
        self.question.hide()
        self.ending = Ending()
        self.ending.free.clicked.connect(lesson_player.keep)
        self.homework = homework_button()
        self.knobs.turned.connect(self._on_turned)
        self.knobs.back.clicked.connect(lesson_player.reset)
        self.prediction.placed.connect(self.answer)
        self.prediction.skip.clicked.connect(lesson_player.skip)
        self.prediction.moved.connect(self.redraw)  # the ghost in the picture follows the prediction
        self._build()

    def _build(self) -> None:
        self._body = down(self.knobs, spacing=8)
        words = QWidget()
        self._beside = beside = down(self.text, self.prediction, on=words, margins=(0, 0, 8, 0), spacing=12)
        beside.addWidget(self.homework, 0, Qt.AlignmentFlag.AlignLeft)
        beside.addWidget(self.ending)
        beside.addStretch(1)
        self.words = plain_scroll_area(words)
        self._both = across(self._body, (self.words, WORDS), spacing=24)
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        top.addWidget(self.count, 0, Qt.AlignmentFlag.AlignTop)
        down(top, self.question, (self._both, 1), self.bar, on=self, margins=(16, 12, 16, 12), spacing=10)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        lesson_player = self._lesson_player
        lesson = lesson_player.lesson
        self._show_guess_beside()
        if lesson is None:
            self._shown = None
            self._open_picture("")
            return
        self._apply_style(view)
        self._open_picture(lesson.interactive)
        step, seen = lesson_player.step, lesson_player.seen
        if not lesson_player.busy:
            self._draw_picture(view)
        lesson_player.score()
        placed = lesson_player.placed.get(lesson_player.place)
        answered = placed if placed is None or not lesson_player.reveal.playing else Placed(placed.guess)
        self.title.setText(lesson.title)
        self.count.setText(tr("{place} of {count}").format(place=lesson_player.place + 1, count=len(lesson.steps)))
        reads = not lesson_player.covered and not lesson_player.finished
        asks = step.predict is not None and not lesson_player.finished
        text = step.to_read if self.filmed else step.text
        heads = spoken(step.predict.ask if asks and step.predict is not None else text)
        self.question.setText("" if lesson_player.finished else heads)
        self.question.setVisible(self.stage and not lesson_player.finished)
        reads = reads and not lesson_player.reveal.playing and (asks or not self.stage)  # no text during the animation
        scale = self._unit * STAGE_TEXT if self.stage else view.scale
        self.text.show_text(text if reads else "", lesson.words, view.theme, scale)
        self.text.setVisible(reads)
        self.words.setVisible(asks or lesson_player.finished or not self.stage or self.interactive is None)
        self.prediction.show_prediction(None if lesson_player.finished else step.predict, answered)
        if lesson_player.reveal.playing:
            self.prediction.result.hide()
        elif placed is not None and placed.value is not None and self._shown_result != placed:
            self._shown_result = placed
            self._result.start()
        given = placed is not None and placed.value is not None and not lesson_player.finished
        self.homework.setVisible(given and lesson.id in self.handed_out and not self.stage and not self.filmed)
        self.ending.setVisible(lesson_player.finished)
        if lesson_player.finished:
            self.ending.show_lesson(lesson, lesson_player.placed, self.following, view.theme, view.scale)
        if self.filmed and self.interactive is not None:
            self.interactive.show_on_paper()
        turnable = bool(seen.knobs) and not lesson_player.covered and not self.filmed
        self.knobs.setVisible(turnable and not lesson_player.finished)
        if seen.knobs:
            self.knobs.show_knobs(seen.knobs, view.wanted, bool(lesson_player.turned))
        progress = "" if self.interactive is None else self.interactive.progress_text
        self.bar.draw(view, progress, stage=self.stage, filmed=self.filmed)
        shown = lesson.id, lesson_player.place, lesson_player.covered, lesson_player.finished
        if shown != self._shown:
            self._shown = shown
            self.take_focus()

    def _draw_picture(self, view: View) -> None:
        """Draw the picture for its step, interpolated during a reveal, and with parts covered while a question is open.

        If the question is about a height, the prediction is in the picture, where it can be dragged until it is placed.
        """
        lesson_player, picture = self._lesson_player, self.interactive
        if picture is None or lesson_player.lesson is None:
            return
        predict, placed = lesson_player.step.predict, lesson_player.placed.get(lesson_player.place)
        ghost = predict is not None and predict.kind == "ghost"
        picture.hidden, picture.block = lesson_player.hidden, lesson_player.lesson.block
        picture.show_step(lesson_player.seen)
        picture.guess = self._guess(placed) if ghost else None
        picture.asks = ghost and lesson_player.covered and not self.filmed
        picture.draw(view)
        if picture.ready and self._morph is not None:
            lesson_player.play_change()
        if self._morph is not None and lesson_player.phase is Phase.CHANGING:
            self._morph.blend(eased(lesson_player.reveal.share))
        elif self._morph is not None and picture.ready:
            self._morph.blend(1.0)
            self._morph = None
        picture.hide_parts(lesson_player.hidden, lesson_player.step.hides, view.theme, view.scale)
        picture.hold(lesson_player.covered)
        picture.setAccessibleDescription(PARTLY_HIDDEN if lesson_player.hidden else picture.summary(view))

    def _guess(self, placed: Placed | None) -> float | None:
        return self.prediction.guess if placed is None else placed.guess

    def _show_guess_beside(self) -> None:
        """Tell the policy panel next to the lesson which guess to show, and whether it can be dragged there."""
        lesson_player = self._lesson_player
        shown: tuple[float | None, bool] = None, False
        if lesson_player.lesson is not None and not lesson_player.finished and not self.filmed:
            predict = lesson_player.step.predict
            if predict is not None and predict.kind == "ghost" and predict.answer.metric == "max_prob":
                placed = lesson_player.placed.get(lesson_player.place)
                shown = self._guess(placed), lesson_player.covered
        if shown != self._guess_beside:
            self._guess_beside = shown
            self.guess_shown.emit(*shown)

    @property
    def at_rest(self) -> bool:
        """Whether the run and the picture have reached the step, and no prediction is waiting for its score."""
        player, picture = self._lesson_player, self.interactive
        placed = player.placed.get(player.place)
        scored = placed is None or placed.value is not None or bool(player.problem)
        return scored and not player.busy and (picture is None or picture.ready)

    def set_stage(self, on: bool) -> None:
        """Switch between presenting and working at a desk."""
        if on != self.stage:
            self.stage = on
            self._beside.removeWidget(self.text)
            self._beside.insertWidget(1 if on else 0, self.text)  # when presenting, the number is shown first
            self.redraw.emit()

    def take_focus(self) -> None:
        """Move the keyboard focus to the open question or, if there is none, to the page."""
        if self._lesson_player.finished:
            self.ending.take_focus()
        elif self._lesson_player.covered:
            self.prediction.take_focus()
        else:
            self.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
        if self.stage:
            self.redraw.emit()

    def _arrange(self) -> None:
        """Place the text beside the picture, or below it if the page is narrow.

        The picture's size never changes afterwards.

        Without a picture, the knobs are below the text.
        """
        wide, directions = self.width() > 1.1 * self.height(), QBoxLayout.Direction
        beside = directions.LeftToRight if wide else directions.TopToBottom
        alone = self.interactive is None
        self._both.setStretch(0, 0 if alone else PICTURE)
        self._both.setDirection(directions.BottomToTop if alone else beside)
        self.knobs.arrange(stacked=alone)

    def _open_picture(self, name: str) -> None:
        """Show the interactive picture called ``name``, or none for an unknown name."""
        from app.teaching.lessons.interactives.table import INTERACTIVES

        wanted = INTERACTIVES.get(name)
        if wanted is (None if self.interactive is None else type(self.interactive)):
            return
        old, self._morph = self.interactive, None
        self.interactive = self._lesson_player.interactive = None
        if old is not None:
            old.dispose()
            self._body.removeWidget(old)
            old.hide()
            old.deleteLater()
        if wanted is not None:
            picture = self.interactive = self._lesson_player.interactive = wanted(self._workspace)
            picture.touched.connect(self.redraw)
            picture.guessed.connect(self.prediction.put)
            self._body.insertWidget(0, picture, 1)
            picture.show()
        self._arrange()

    def _apply_style(self, view: View) -> None:
        theme, unit = view.theme, self._unit
        self.title.setObjectName("muted" if self.stage else "")
        self.title.style().polish(self.title)  # the style sheet has a rule for muted text
        self.title.setFont(
            theme.font("body", STAGE_TEXT * unit * 1.15) if self.stage else theme.font("number", view.scale * 1.1)
        )
        self.question.setFont(theme.font("number", STAGE_QUESTION * unit))
        for label in (self.count, self.bar.note):
            label.setFont(theme.font("body", STAGE_TEXT * unit if self.stage else view.scale))
        self.prediction.stage = unit if self.stage else 0.0
        self.prediction.set_look(theme, STAGE_TEXT * unit if self.stage else view.scale)
        self.prediction.filmed = self.filmed

    @property
    def _unit(self) -> float:
        """Pixels on this page per pixel of a screen with 1080 lines."""
        return max(self.height(), 400) / 1080

    @Slot(float)
    def answer(self, guess: float | None) -> None:
        """Place a prediction, or skip it. The picture then changes from its current state to the answer."""
        self._morph = None if self.interactive is None else Morph(self.interactive)
        self._lesson_player.predict(guess)

    @Slot()
    def _on_result(self) -> None:
        """Scroll to the result once the text has been laid out with it."""
        self.words.ensureWidgetVisible(self.prediction.sentence)

    def dispose(self) -> None:
        if self.interactive is not None:
            self.interactive.dispose()

    @Slot(str, object)
    def _on_turned(self, path: str, value: object) -> None:
        try:
            self._lesson_player.turn({path: value})
        except SettingsError as error:
            self.knobs.refuse(path, error)
