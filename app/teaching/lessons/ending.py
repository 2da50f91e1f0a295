"""The end of a lesson: the result, the questions worth reviewing, and the next lesson."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import across, down
from app.teaching.lessons.prediction import Placed
from app.teaching.lessons.speaker_notes import analogy_of
from app.theme.labels import Label
from app.theme.tokens import Theme
from grpo_core.teaching.lessons import Lesson, spoken
from grpo_core.text import tr

MOST = 3
"""Maximum number of questions that are listed."""


def homework_button() -> QPushButton:
    """Return the button that saves the predictions of this session as homework."""
    button = QPushButton(tr("Save my homework…"))
    button.setToolTip(tr("Predictions, numbers and your conclusion as one small file for your teacher."))
    return button


class Ending(QWidget):
    """The text shown after the last step.

    Signals:
        chosen: emitted with the id of the lesson to open next; empty for the list of lessons.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._following = ""
        self.result, self.analogy, self.missed = Label(wraps=True), Label(wraps=True), Label(wraps=True)
        self.following, self.all = QPushButton(), QPushButton(tr("All lessons"))
        self.free = QPushButton(tr("Go on with this run"))
        self.homework = homework_button()
        self.following.setProperty("primary", True)
        self.free.setToolTip(tr("The lesson's run in the full program, with all panels and all settings (O)."))
        self.following.clicked.connect(self._on_following)
        self.all.clicked.connect(self._on_all)
        row = across(self.homework, self.all, self.free, None)
        down(self.result, self.analogy, self.missed, self.following, row, on=self, margins=0, spacing=12)
        for button in (self.following, self.homework, self.all, self.free):
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.hide()

    def show_lesson(
        self, lesson: Lesson, placed: Mapping[int, Placed], following: Lesson | None, theme: Theme, scale: float
    ) -> None:
        """Show the results of the predictions ``placed``, by step, and offer ``following`` as the next lesson."""
        self.result.setFont(theme.font("number", scale))
        for label in (self.analogy, self.missed):
            label.setFont(theme.font("body", scale * 1.15))
        self.analogy.setText(analogy_of(lesson))
        self.analogy.setVisible(bool(self.analogy.text()))
        self.result.setText(result_of(lesson, placed))
        self.homework.setVisible(bool(placed))
        missed = [
            spoken(predict.ask)
            for place, predict in lesson.questions.items()
            if place in placed and not placed[place].right
        ]
        self.missed.setVisible(bool(missed))
        if missed:
            self.missed.setText(tr("Look at these once more (Left goes back):") + "\n\n" + "\n\n".join(missed[:MOST]))
        self._following = "" if following is None else following.id
        self.following.setVisible(following is not None)
        if following is not None:
            self.following.setText(tr("Next lesson: {title}").format(title=following.title))

    def take_focus(self) -> None:
        """Move the keyboard focus to the button for the next lesson."""
        (self.following if self._following else self.all).setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _on_following(self) -> None:
        self.chosen.emit(self._following)

    @Slot()
    def _on_all(self) -> None:
        self.chosen.emit("")


def result_of(lesson: Lesson, placed: Mapping[int, Placed]) -> str:
    """Return how many of the lesson's predictions were right and how many were close, without skipped questions."""
    made = [one for one in placed.values() if one.guess is not None]
    right, close = sum(one.right for one in made), sum(one.close for one in made)
    if lesson.questions and not made:
        return tr("The end. No prediction was made.")
    if close:
        return tr("The end. Right predictions: {right} of {count}, and close: {close}.").format(
            count=len(made), right=right, close=close
        )
    return tr("The end. Right predictions: {right} of {count}.").format(count=len(made), right=right)
