"""The picture of a lesson: created when the lesson is opened, and partly covered while a question is open."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.morph import Morph
from app.teaching.lessons.player import LessonPlayer, Phase
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import tr

PARTLY_HIDDEN = tr("Part of this picture is hidden until a question is answered.")


class LessonPicture(QWidget):
    """The container of the open lesson's interactive picture, one of ``app/teaching/lessons/interactives``.

    Attributes:
        interactive: the picture; None if the lesson has none of its own.
        filmed: whether it is being filmed, which hides invitations to operate it.

    Signals:
        touched: emitted when the user has changed something in it between frames.
        guessed: emitted when a prediction was dragged in it.
    """

    touched = Signal()
    guessed = Signal(float)

    def __init__(self, workspace: Workspace, lesson_player: LessonPlayer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._lesson_player = workspace, lesson_player
        self.interactive: Interactive | None = None
        self.filmed = False
        self._morph: Morph | None = None
        self._place = down(on=self, margins=0)
        self.hide()

    @property
    def progress_text(self) -> str:
        """Message about the progress of the picture's computation, or an empty string if there is none."""
        return "" if self.interactive is None else self.interactive.progress_text

    def open(self, name: str) -> bool:
        """Show the interactive called ``name``, or none for an unknown name, and return whether it has changed."""
        from app.teaching.lessons.interactives.table import INTERACTIVES

        wanted = INTERACTIVES.get(name)
        if wanted is (None if self.interactive is None else type(self.interactive)):
            return False
        self.clear()
        if wanted is not None:
            self.interactive = wanted(self._workspace)
            self.interactive.touched.connect(self.touched)
            self.interactive.guessed.connect(self.guessed)
            self._place.addWidget(self.interactive)
        self.setVisible(wanted is not None)
        self._lesson_player.interactive = self.interactive
        return True

    def clear(self) -> None:
        """Remove the interactive."""
        self._morph = None
        old, self.interactive, self._lesson_player.interactive = self.interactive, None, None
        self.hide()
        if old is not None:
            old.dispose()
            self._place.removeWidget(old)
            old.hide()
            old.deleteLater()

    def draw(self, view: View, guess: float | None, *, asks: bool) -> None:
        """Draw the current step, interpolated during a reveal, and with parts covered while a question is open.

        Args:
            view: the view of the lesson's run.
            guess: the predicted height that is marked in the picture; None for no mark.
            asks: whether that mark can be dragged.
        """
        lesson_player, picture = self._lesson_player, self.interactive
        if picture is None:
            return
        picture.hidden = lesson_player.hidden
        picture.block = 0 if lesson_player.lesson is None else lesson_player.lesson.block
        picture.show_step(lesson_player.seen)
        picture.guess, picture.asks = guess, asks and not self.filmed
        picture.draw(view)
        if picture.ready and self._morph is not None:
            lesson_player.play_change()
        if self._morph is not None and lesson_player.phase is Phase.CHANGING:
            self._morph.blend(lesson_player.reveal.eased)
        elif self._morph is not None and picture.ready:
            self._morph.blend(1.0)
            self._morph = None
        picture.hide_parts(lesson_player.hidden, lesson_player.step.hides, view.theme, view.scale)
        picture.hold(lesson_player.covered)
        picture.setAccessibleDescription(PARTLY_HIDDEN if lesson_player.hidden else picture.summary(view))

    def show_on_paper(self) -> None:
        """Hide invitations to operate the picture if it cannot be operated."""
        if self.filmed and self.interactive is not None:
            self.interactive.show_on_paper()

    def keep_before_answer(self) -> None:
        """Store the current picture as the start of the transition to the answer."""
        self._morph = None if self.interactive is None else Morph(self.interactive)

    def dispose(self) -> None:
        """Stop all computations when the program closes."""
        if self.interactive is not None:
            self.interactive.dispose()
