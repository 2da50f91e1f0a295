"""The speaker's notes: a text field that is read-only until the user edits it, and the file that stores them.

They are written shortly after the last change and read at the next start.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.clock import Timer
from app.settings.files import write_or_say
from grpo_core.text import tr

LARGEST = 1_000_000
"""Maximum size in bytes of a notes file that is read."""
SETTLE_MS = 2000


class NotesFile(QObject):
    """Stores the notes in a text file.

    Signals:
        refused: emitted with the reason, as a sentence, if the notes could not be written.
    """

    refused = Signal(str)

    def __init__(self, path: Path, notes: NotesEdit, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path, self._notes = path, notes
        self._later = Timer(self, self.save, SETTLE_MS)
        notes.set_text(_read(path))
        notes.textChanged.connect(self._later.start)

    @Slot()
    def save(self) -> None:
        """Write the notes now."""
        self._later.stop()
        refusal = write_or_say(self._path, self._notes.toPlainText().encode("utf-8", "replace"), tr("The notes"))
        if refusal:
            self.refused.emit(refusal)

    def close(self) -> None:
        """Write pending changes."""
        if self._later.isActive():
            self.save()


def _read(path: Path) -> str:
    """Return the stored notes, or an empty string if they cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ""


class NotesEdit(QPlainTextEdit):
    """A text field that accepts keys only while it is being edited.

    Signals:
        wanted: emitted with True when a mouse button is pressed on it, to edit it, and with False when Esc ends that.
    """

    wanted = Signal(bool)

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

    def set_text(self, text: str) -> None:
        """Replace the notes, for example with those of a session, without emitting a signal."""
        with QSignalBlocker(self):
            self.setPlainText(text)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.wanted.emit(True)
        super().mousePressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._ends(event):
            event.accept()  # before the command that ends the presentation
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._ends(event):
            self.wanted.emit(False)
        else:
            super().keyPressEvent(event)

    def _ends(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Escape and not self.isReadOnly()
