"""Files that were opened or saved lately."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.settings.store import PreferenceStore
from grpo_core.errors import GrpoError


class RecentFiles(QObject):
    """Runs and sessions that were opened or saved, kept in the preferences.

    Signals:
        changed: the list is another one.
    """

    changed = Signal()

    def __init__(self, preferences: PreferenceStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences

    @property
    def paths(self) -> tuple[str, ...]:
        """Their paths, the last one first."""
        return self._preferences.current.recent

    def remember(self, path: Path) -> None:
        """A file was opened or saved: it comes first from now on."""
        try:
            self._preferences.put(self._preferences.current.with_recent(path.absolute()))
        except GrpoError:
            return  # a path too long to be kept
        self.changed.emit()

    def forget(self, path: str) -> None:
        """A file is gone: take it off the list."""
        self._preferences.change(recent=tuple(name for name in self.paths if name != path))
        QTimer.singleShot(0, self, self._announce)  # not while the command that would open it is being carried out

    @Slot()
    def _announce(self) -> None:
        self.changed.emit()
