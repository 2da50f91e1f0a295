"""The application object: on macOS a double click on a run file arrives here, as an event."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication


class QtApplication(QApplication):
    """Keeps files that the desktop wants opened until somebody opens them.

    An event filter would see every event of every widget; what the desktop says is sent to this object itself.
    """

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self._waiting: list[Path] = []
        self._open: Callable[[Path], None] | None = None

    def open_with(self, opener: Callable[[Path], None]) -> bool:
        """From now on ``opener`` is called with each file, at once with those that wait. Whether there were any."""
        self._open = opener
        waiting, self._waiting = self._waiting, []
        for path in waiting:
            opener(path)
        return bool(waiting)

    def event(self, event: QEvent) -> bool:
        if not isinstance(event, QFileOpenEvent):
            return super().event(event)
        name = event.file() or event.url().toLocalFile()
        if not name:
            return False  # an address that is no file
        if self._open is None:
            self._waiting.append(Path(name))
        else:
            self._open(Path(name))
        return True
