"""The current preferences, and their storage on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer, soon
from app.settings.preferences import Preferences, save_preferences
from grpo_core.errors import GrpoError

SETTLE_MS = 2000
"""Milliseconds between the last change and the writing of the preferences."""


class PreferenceStore(QObject):
    """Keeps a window's preferences and stores them in their file.

    Signals:
        changed: emitted after a change.
        recent_changed: emitted when the list of recent files has changed.
        refused: emitted with the reason, as a sentence, if the preferences could not be written.
    """

    refused = Signal(str)
    changed = Signal()
    recent_changed = Signal()

    def __init__(self, current: Preferences, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.current = current
        self._path = path
        self._later = Timer(self, self.save, SETTLE_MS)

    def put(self, preferences: Preferences) -> None:
        """Replace the preferences. They are written shortly afterwards."""
        self.current = preferences
        self.changed.emit()
        self._later.start()

    def change(self, **changes: Any) -> None:
        """Change some preferences.

        Raises:
            SettingsError: a value is outside its range; nothing is changed.
        """
        self.put(self.current.replace(**changes))

    def remember(self, path: Path) -> None:
        """Make a run or a session, which was opened or saved, the first of the recent files."""
        try:
            self.put(self.current.with_recent(path.absolute()))
        except GrpoError:
            return  # a path too long to be stored
        self.recent_changed.emit()

    def forget(self, path: str) -> None:
        self.change(recent=tuple(name for name in self.current.recent if name != path))
        soon(self, self.recent_changed.emit)  # not while the command that would open it is running

    @Slot()
    def save(self) -> None:
        """Write the preferences to their file now."""
        self._later.stop()
        sentence = save_preferences(self.current, self._path)
        if sentence:
            self.refused.emit(sentence)
