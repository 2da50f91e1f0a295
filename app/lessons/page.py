"""The page of a lesson: a question, a picture with a knob or two, few words, a prediction, and the way on."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.lessons.ending import Ending
from app.lessons.interactives.base import Interactive
from app.lessons.knobs import Knobs
from app.lessons.morph import Morph
from app.lessons.player import LessonPlayer
from app.lessons.prediction import Placed, PredictionBox
from app.lessons.text import LessonText
from app.theme.labels import Label, plain_tip
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import SettingsError
from grpo_core.lessons import Lesson, spoken
from grpo_core.text import tr

PICTURE, WORDS = 63, 37
"""Shares of the page's width."""
STAGE_TEXT, STAGE_QUESTION = 1.9, 2.2
"""Before a class, on a screen of 1080 lines: times the roles "body" (13 pixels) and "number" (20)."""
PARTLY_HIDDEN = tr("Part of this picture is hidden until the question is answered.")
PREDICT_FIRST = tr("Predict first: ▲ ▼ and Return. Going on once more skips the question.")


class LessonPage(QWidget):
    """Draws the step that the lesson player shows.

    Attributes:
        following: the lesson after this one, which its end leads on to; None after the last.
        stage: a class looks on: one question, one picture, one number, and nothing else.
        filmed: nobody operates the page, so that it has no buttons, no knobs, and no words that ask for it.

    Signals:
        redraw: something changed that no frame tells of.
        wanted: the lesson of this id is to be opened; empty for the list.
        guess_shown: the picture of the policy that stands beside the lesson shows this predicted probability of the
            likeliest action (None before one is chosen), which can be dragged where the second argument says so.
    """

    redraw = Signal()
    wanted = Signal(str)
    guess_shown = Signal(object, bool)

    def __init__(self, workspace: Workspace, lesson_player: LessonPlayer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._lesson_player = workspace, lesson_player
        self.following: Lesson | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Lesson"))
        self._shown: tuple[str, int, bool, bool] | None = None
        self._shown_result: Placed | None = None
        self._guess_beside: tuple[float | None, bool] = None, False
        self._result = QTimer(self)
        self._result.setSingleShot(True)
        self._result.timeout.connect(self._on_result)
        self.interactive: Interactive | None = None
        self._morph: Morph | None = None
        self.stage = self.filmed = False
        self.title, self.question, self.count, self.note = Label(), Label(), Label(), Label()
        self.question.setWordWrap(True)
        self.question.setAccessibleName(tr("Question"))
        self.question.hide()
        self.title.setWordWrap(True)
        self.title.setAccessibleName(tr("Question of the lesson"))
        self.count.setObjectName("muted")
        self.note.setObjectName("muted")
        self.note.setWordWrap(True)
        self.note.setMinimumWidth(1)  # gives way to the buttons
        self.text, self.knobs, self.prediction = LessonText(), Knobs(), PredictionBox()
        self.ending = Ending()
        self.ending.chosen.connect(self.wanted)
        self.ending.kept.connect(lesson_player.keep)
        self.knobs.turned.connect(self._on_turned)
        self.knobs.reset.connect(lesson_player.reset)
        self.prediction.placed.connect(self._on_placed)
        self.prediction.skipped.connect(lesson_player.skip)
        self.prediction.moved.connect(self._on_guess)
        self.back, self.next = QPushButton(tr("‹ Back")), QPushButton(tr("Next ›"))
        self.open, self.leave = QPushButton(tr("Open in the full app")), QPushButton(tr("Leave"))
        self._build()

    def _build(self) -> None:
        self._body = QVBoxLayout()
        self._body.setSpacing(8)
        self._body.addWidget(self.knobs)
        words = QWidget()
        self._beside = beside = QVBoxLayout(words)
        beside.setContentsMargins(0, 0, 8, 0)
        beside.setSpacing(12)
        beside.addWidget(self.text)
        beside.addWidget(self.prediction)
        beside.addWidget(self.ending)
        beside.addStretch(1)
        self.words = QScrollArea()
        self.words.setWidget(words)
        self.words.setWidgetResizable(True)
        self.words.setFrameShape(QFrame.Shape.NoFrame)
        self.words.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.words.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._both = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._both.setSpacing(24)
        self._both.addLayout(self._body, PICTURE)
        self._both.addWidget(self.words, WORDS)
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        top.addWidget(self.count, 0, Qt.AlignmentFlag.AlignTop)
        bar = QHBoxLayout()
        bar.setSpacing(8)
        for button, tip in (
            (self.back, tr("The step before (Left).")),
            (self.next, tr("The next step (Right, Space).")),
            (self.open, tr("Go on with this run, all panels and all settings.")),
            (self.leave, tr("Back to your own run, as you left it (Esc).")),
        ):
            button.setToolTip(plain_tip(tip))
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for button in (self.back, self.next):
            bar.addWidget(button)
        bar.addWidget(self.note, 1)
        bar.addStretch(1)
        for button in (self.open, self.leave):
            button.setProperty("flat", True)
            bar.addWidget(button)
        self.back.clicked.connect(self._lesson_player.back)
        self.next.clicked.connect(self._lesson_player.next)
        self.open.clicked.connect(self._lesson_player.keep)
        self.leave.clicked.connect(self._lesson_player.leave)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(10)
        column.addLayout(top)
        column.addWidget(self.question)
        column.addLayout(self._both, 1)
        column.addLayout(bar)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        """Show the step that is given, on the lesson's run."""
        lesson_player = self._lesson_player
        lesson = lesson_player.lesson
        self._show_guess_beside()
        if lesson is None:
            self._clear()
            return
        self._dress(view)
        self._picture(lesson.interactive)
        step, seen = lesson_player.step, lesson_player.seen
        if self.interactive is not None and not lesson_player.busy:
            self._draw_picture(view, self.interactive)
        lesson_player.score()
        placed = lesson_player.placed.get(lesson_player.place)
        answered = placed if placed is None or not lesson_player.reveal.playing else Placed(placed.guess)
        self.title.setText(lesson.title)
        self.count.setText(tr("{place} of {count}").format(place=lesson_player.place + 1, count=len(lesson.steps)))
        reads = not lesson_player.covered and not lesson_player.finished
        asks = step.predict is not None and not lesson_player.finished
        heads = spoken(step.predict.ask if asks and step.predict is not None else step.text)
        self.question.setText("" if lesson_player.finished else heads)
        self.question.setVisible(self.stage and not lesson_player.finished)
        reads = reads and not lesson_player.reveal.playing and (asks or not self.stage)  # no text during motion
        scale = self._unit * STAGE_TEXT if self.stage else view.scale
        self.text.show_text(step.text if reads else "", lesson.words, view.theme, scale)
        self.text.setVisible(reads)
        self.words.setVisible(asks or lesson_player.finished or not self.stage or self.interactive is None)
        self.prediction.show_prediction(None if lesson_player.finished else step.predict, answered)
        if lesson_player.reveal.playing:
            self.prediction.result.hide()
        elif placed is not None and placed.value is not None and self._shown_result != placed:
            self._shown_result = placed
            self._result.start()
        self.ending.setVisible(lesson_player.finished)
        if lesson_player.finished:
            self.ending.show_lesson(lesson, lesson_player.placed, self.following, view.theme, view.scale)
        if self.filmed and self.interactive is not None:
            self.interactive.show_on_paper()
        turnable = bool(seen.knobs) and not lesson_player.covered and not self.filmed
        self.knobs.setVisible(turnable and not lesson_player.finished)
        if seen.knobs:
            self.knobs.show_knobs(seen.knobs, view.wanted, bool(lesson_player.turned))
        self._say_where(view)

    def _draw_picture(self, view: View, picture: Interactive) -> None:
        """The interactive at its step: on its way there while an answer is played, and without what would give an
        answer away while a question is open."""
        lesson_player = self._lesson_player
        picture.hidden = lesson_player.hidden
        picture.show_step(lesson_player.seen)
        placed, predict = lesson_player.placed.get(lesson_player.place), lesson_player.step.predict
        ghost = predict is not None and predict.kind == "ghost"
        asks = ghost and lesson_player.covered and not self.filmed
        picture.show_ghost(self._guess(placed) if ghost else None, asks=asks)
        picture.draw(view)
        if picture.ready and self._morph is not None:
            lesson_player.play_change()
        if self._morph is not None and lesson_player.changing:
            self._morph.blend(lesson_player.reveal.eased)
        elif self._morph is not None and picture.ready:
            self._morph.blend(1.0)
            self._morph = None
        picture.hide_parts(lesson_player.hidden, view.theme, view.scale)
        picture.hold(lesson_player.covered)
        picture.setAccessibleDescription(PARTLY_HIDDEN if lesson_player.hidden else picture.summary(view))

    def _guess(self, placed: Placed | None) -> float | None:
        """The prediction as it stands now, or as it was ``placed``."""
        return self.prediction.guess if placed is None else placed.guess

    def _show_guess_beside(self) -> None:
        """Where a height is asked for that the picture of the policy beside the lesson has, it is dragged there."""
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

    def put_guess(self, guess: float) -> None:
        """A prediction was dragged in a picture."""
        self.prediction.put(guess)

    def _say_where(self, view: View) -> None:
        lesson_player, lesson = self._lesson_player, self._lesson_player.lesson
        assert lesson is not None
        last = lesson_player.place + 1 == len(lesson.steps)
        self.back.setEnabled(lesson_player.place > 0)
        self.next.setText(tr("Finish") if last and not lesson_player.covered else tr("Next ›"))
        self.next.setVisible(not lesson_player.finished and not self.filmed)
        self.back.setVisible(not self.filmed)
        progress = (
            tr("Update {head} of {update}…").format(head=view.head, update=lesson_player.seen.update)
            if lesson_player.busy
            else ""
        )
        waiting = self.interactive.progress_text if self.interactive is not None else ""
        warned = PREDICT_FIRST if lesson_player.warned else ""
        note = lesson_player.problem or warned or progress or waiting
        self.note.setText(note)
        self.note.setVisible(bool(note))
        here = lesson.id, lesson_player.place, lesson_player.covered, lesson_player.finished
        if here != self._shown:
            self._shown = here
            self.take_focus()

    def set_stage(self, on: bool) -> None:
        """Stand before a class, or on a desk."""
        if on != self.stage:
            self.stage = on
            self._beside.removeWidget(self.text)
            self._beside.insertWidget(1 if on else 0, self.text)  # before a class the number comes first
            self.redraw.emit()

    def take_focus(self) -> None:
        """Give the keyboard to the question that stands open, or else to nobody in particular: keys walk on."""
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
        """Words stand beside the picture, whose size then never changes; below it only where the page is narrow.

        Without a picture the knobs lie below the words.
        """
        across, directions = self.width() > 1.1 * self.height(), QBoxLayout.Direction
        beside = directions.LeftToRight if across else directions.TopToBottom
        self._both.setDirection(directions.BottomToTop if self.interactive is None else beside)
        self.knobs.stand(self.interactive is None)

    def _picture(self, name: str) -> None:
        """The lesson's interactive, made when it is first needed."""
        from app.lessons.interactives.table import INTERACTIVES

        wanted = INTERACTIVES.get(name)
        if wanted is not None and type(self.interactive) is wanted:
            return
        self._clear()
        if wanted is not None:
            self.interactive = wanted(self._workspace)
            self.interactive.touched.connect(self.redraw)
            self.interactive.guessed.connect(self.put_guess)
            self._body.insertWidget(0, self.interactive, 1)
        self._both.setStretch(0, PICTURE if self.interactive is not None else 0)
        self._arrange()
        self._lesson_player.interactive = self.interactive

    def _clear(self) -> None:
        self._shown = self._morph = None
        old, self.interactive, self._lesson_player.interactive = self.interactive, None, None
        if old is not None:
            old.let_go()
            self._body.removeWidget(old)
            old.hide()
            old.deleteLater()

    def _dress(self, view: View) -> None:
        theme, unit = view.theme, self._unit
        self.title.setObjectName("muted" if self.stage else "")
        self.title.setFont(
            theme.font("body", STAGE_TEXT * unit * 1.15) if self.stage else theme.font("number", view.scale * 1.1)
        )
        self.question.setFont(theme.font("number", STAGE_QUESTION * unit))
        for label in (self.count, self.note):
            label.setFont(theme.font("body", STAGE_TEXT * unit if self.stage else view.scale))
        if self.stage:
            self.prediction.set_look(theme, STAGE_TEXT * unit, unit)
        else:
            self.prediction.set_look(theme, view.scale)
        for button in (self.open, self.leave):
            button.setVisible(not self.stage)
        self.prediction.filmed = self.filmed

    @property
    def _unit(self) -> float:
        """Pixels of this page for a pixel of a screen of 1080 lines."""
        return max(self.height(), 400) / 1080

    def answer(self, guess: float | None) -> None:
        """Place a prediction, or none; the picture changes from what it shows now into the answer."""
        self._morph = None if self.interactive is None else Morph(self.interactive)
        self._lesson_player.predict(guess)

    @Slot(float)
    def _on_placed(self, guess: float) -> None:
        self.answer(guess)

    @Slot()
    def _on_guess(self) -> None:
        """The ghost in the picture goes with the prediction."""
        self.redraw.emit()

    @Slot()
    def _on_result(self) -> None:
        """The words have been laid out with the result among them: bring it to where it can be read."""
        self.words.ensureWidgetVisible(self.prediction.sentence)

    def let_go(self) -> None:
        """The program closes."""
        if self.interactive is not None:
            self.interactive.let_go()

    @Slot(str, object)
    def _on_turned(self, path: str, value: object) -> None:
        try:
            self._lesson_player.turn({path: value})
        except SettingsError as error:
            self.knobs.refuse(path, error)
