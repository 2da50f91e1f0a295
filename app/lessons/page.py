"""The page of a lesson: a question, a picture with a knob or two, few words, a prediction, and the way on."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.lessons.interactives.base import Interactive
from app.lessons.knobs import Knobs
from app.lessons.player import LessonPlayer
from app.lessons.prediction import Placed, PredictionBox
from app.lessons.text import LessonText
from app.theme.labels import Label, plain_tip
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import SettingsError
from grpo_core.text import tr

PICTURE, WORDS = 63, 37
"""Shares of the page's width."""
PREDICT_FIRST = tr("Predict first: ▲ ▼ and Return. Going on once more skips the question.")


class LessonPage(QWidget):
    """Draws the step that the lesson player shows.

    Signals:
        redraw: something changed that no frame tells of.
    """

    redraw = Signal()

    def __init__(self, workspace: Workspace, lesson_player: LessonPlayer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._lesson_player = workspace, lesson_player
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Lesson"))
        self._shown: tuple[str, int, bool] | None = None
        self._shown_result: Placed | None = None
        self._result = QTimer(self)
        self._result.setSingleShot(True)
        self._result.timeout.connect(self._on_result)
        self.interactive: Interactive | None = None
        self.title, self.count, self.note = Label(), Label(), Label()
        self.title.setWordWrap(True)
        self.title.setAccessibleName(tr("Question of the lesson"))
        self.count.setObjectName("muted")
        self.note.setObjectName("muted")
        self.note.setWordWrap(True)
        self.note.setMinimumWidth(1)  # gives way to the buttons
        self.text, self.knobs, self.prediction = LessonText(), Knobs(), PredictionBox()
        self.knobs.turned.connect(self._on_turned)
        self.knobs.reset.connect(lesson_player.reset)
        self.prediction.placed.connect(lesson_player.predict)
        self.prediction.skipped.connect(lesson_player.skip)
        self.back, self.next = QPushButton(tr("‹ Back")), QPushButton(tr("Next ›"))
        self.open, self.leave = QPushButton(tr("Open in the full app")), QPushButton(tr("Leave"))
        self._build()

    def _build(self) -> None:
        self._body = QVBoxLayout()
        self._body.setSpacing(8)
        self._body.addWidget(self.knobs)
        words = QWidget()
        beside = QVBoxLayout(words)
        beside.setContentsMargins(0, 0, 8, 0)
        beside.setSpacing(12)
        beside.addWidget(self.text)
        beside.addWidget(self.prediction)
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
        column.addLayout(self._both, 1)
        column.addLayout(bar)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        """Show the step that is given, on the lesson's run."""
        lesson_player = self._lesson_player
        lesson = lesson_player.lesson
        if lesson is None:
            self._clear()
            return
        self._dress(view)
        self._picture(lesson.interactive)
        step, seen = lesson_player.step, lesson_player.seen
        if self.interactive is not None and not lesson_player.busy:
            self.interactive.show_step(seen)
            self.interactive.draw(view)
            self.interactive.setAccessibleDescription(self.interactive.summary(view))
        lesson_player.score()
        placed = lesson_player.placed.get(lesson_player.place)
        self.title.setText(lesson.title)
        self.count.setText(tr("{place} of {count}").format(place=lesson_player.place + 1, count=len(lesson.steps)))
        self.text.show_text(seen.text if lesson_player.covered else step.text, lesson.words, view.theme, view.scale)
        self.text.setVisible(not lesson_player.covered)
        self.prediction.show_prediction(step.predict, placed)
        if placed is not None and placed.value is not None and self._shown_result != placed:
            self._shown_result = placed
            self._result.start()
        self.knobs.setVisible(bool(seen.knobs) and not lesson_player.covered)
        if seen.knobs:
            self.knobs.show_knobs(seen.knobs, view.wanted, bool(lesson_player.turned))
        self._say_where(view)

    def _say_where(self, view: View) -> None:
        lesson_player, lesson = self._lesson_player, self._lesson_player.lesson
        assert lesson is not None
        last = lesson_player.place + 1 == len(lesson.steps)
        self.back.setEnabled(lesson_player.place > 0)
        self.next.setText(tr("Finish") if last and not lesson_player.covered else tr("Next ›"))
        progress = (
            tr("Update {head} of {update}…").format(head=view.head, update=lesson_player.seen.update)
            if lesson_player.busy
            else ""
        )
        waiting = self.interactive.said if self.interactive is not None else ""
        warned = PREDICT_FIRST if lesson_player.warned else ""
        note = lesson_player.problem or warned or progress or waiting
        self.note.setText(note)
        self.note.setVisible(bool(note))
        here = lesson.id, lesson_player.place, lesson_player.covered
        if here != self._shown:
            self._shown = here
            self.take_focus()

    def take_focus(self) -> None:
        """Give the keyboard to the question that stands open, or else to nobody in particular: keys walk on."""
        if self._lesson_player.covered:
            self.prediction.take_focus()
        else:
            self.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

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
            self._body.insertWidget(0, self.interactive, 1)
        self._both.setStretch(0, PICTURE if self.interactive is not None else 0)
        self._arrange()
        self._lesson_player.interactive = self.interactive

    def _clear(self) -> None:
        self._shown = None
        old, self.interactive, self._lesson_player.interactive = self.interactive, None, None
        if old is not None:
            old.let_go()
            self._body.removeWidget(old)
            old.hide()
            old.deleteLater()

    def _dress(self, view: View) -> None:
        self.title.setFont(view.theme.font("number", view.scale * 1.1))
        self.count.setFont(view.theme.font("body", view.scale))
        self.note.setFont(view.theme.font("body", view.scale))
        self.prediction.set_look(view.theme, view.scale)

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
