"""The text field for the speaker's notes, read-only until the user edits them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from grpo_core.text import tr


class NotesEdit(QPlainTextEdit):
    """A text field that accepts keys only while it is being edited.

    Signals:
        clicked: emitted when a mouse button is pressed on it.
        finished: emitted when Esc is pressed while it is being edited.
    """

    clicked = Signal()
    finished = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Notes"))
        self.setPlaceholderText(tr("Notes: the class does not see them, and a session keeps them."))
        self.setTabChangesFocus(True)
        self.set_editing(False)

    def set_editing(self, on: bool) -> None:
        """Set whether the field accepts keys. If it does not, all keys go to the window."""
        self.setReadOnly(not on)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if on else Qt.FocusPolicy.NoFocus)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.clicked.emit()
        super().mousePressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._ends(event):
            event.accept()  # before the command that ends the presentation
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._ends(event):
            self.finished.emit()
        else:
            super().keyPressEvent(event)

    def _ends(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Escape and not self.isReadOnly()
