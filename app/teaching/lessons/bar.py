"""The bar below a lesson: buttons to go back, to go on and to leave, with a note between them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import across
from app.teaching.lessons.player import LessonPlayer, Section
from app.theme.labels import Label, plain_tip
from app.theme.reasons import allow
from app.workspace.view import View
from grpo_core.text import tr

PREDICT_FIRST = tr("Predict first: ▲ ▼ and Return. Going on again skips the question.")


class LessonBar(QWidget):
    """Navigation buttons of the open lesson, with a note on what has to happen before the next step."""

    def __init__(self, lesson_player: LessonPlayer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lesson_player = lesson_player
        self.back, self.next = QPushButton(tr("‹ Back")), QPushButton(tr("Next ›"))
        self.open, self.leave = QPushButton(tr("Open in the full app")), QPushButton(tr("Leave"))
        self.note = Label(name="muted", wraps=True)
        self.note.setMinimumWidth(1)  # shrinks to leave space for the buttons
        for button, tip, pressed in (
            (self.back, tr("The previous step (Left)."), lesson_player.back),
            (self.next, tr("The next step (Right, Space)."), lesson_player.next),
            (self.open, tr("Continue this run with all panels and all settings."), lesson_player.keep),
            (self.leave, tr("Back to your own run, as you left it (Esc)."), lesson_player.leave),
        ):
            button.setToolTip(plain_tip(tip))
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(pressed)
        row = across(self.back, self.next, (self.note, 1), None, on=self, margins=0, spacing=8)
        for button in (self.open, self.leave):
            button.setProperty("flat", True)
            row.addWidget(button)

    def draw(self, view: View, picture_progress: str, *, stage: bool, filmed: bool) -> None:
        """Show the state of the lesson.

        Args:
            picture_progress: what the lesson's own picture is still computing; empty if nothing.
            stage: whether the lesson is being presented, which hides the buttons for leaving it.
            filmed: whether the lesson is being filmed, which hides all buttons.
        """
        lesson_player = self._lesson_player
        lesson = lesson_player.lesson
        assert lesson is not None
        last = lesson_player.place + 1 == len(lesson.steps)
        allow(self.back, "" if lesson_player.place else tr("This is the first step."))
        self.back.setVisible(not filmed)
        self.next.setText(tr("Finish") if last and not lesson_player.covered else tr("Next ›"))
        self.next.setVisible(not lesson_player.finished and not filmed)
        for button in (self.open, self.leave):
            button.setVisible(not stage)
        run_progress = (
            tr("Update {head} of {update}…").format(head=view.head, update=lesson_player.seen.update)
            if lesson_player.busy
            else ""
        )
        warning = PREDICT_FIRST if lesson_player.section is Section.WARNING else ""
        note = lesson_player.problem or warning or run_progress or picture_progress
        self.note.setText(note)
        self.note.setVisible(bool(note))
        parts = (self.back, self.next, self.note, self.open, self.leave)
        self.setVisible(any(not part.isHidden() for part in parts))  # an empty line would take space from the picture
