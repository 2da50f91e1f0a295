"""The list of recently used files."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.clock import soon
from app.controllers.program import Program
from grpo_core.errors import GrpoError


class RecentFiles(QObject):
    """Runs and sessions that were opened or saved, stored in the preferences.

    Signals:
        changed: emitted when the list changes.
    """

    changed = Signal()

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._preferences = program.preferences

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files, most recent first."""
        return self._preferences.current.recent

    def remember(self, path: Path) -> None:
        try:
            self._preferences.put(self._preferences.current.with_recent(path.absolute()))
        except GrpoError:
            return  # a path too long to be stored
        self.changed.emit()

    def forget(self, path: str) -> None:
        self._preferences.change(recent=tuple(name for name in self.paths if name != path))
        soon(self, self.changed.emit)  # not while the command that would open it is running
