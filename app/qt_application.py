"""The application object, which on macOS receives an event when the user double-clicks a run file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication


class QtApplication(QApplication):
    """Collects the files that the desktop requests to open until there is a function that opens them.

    The requests are sent to the application object itself, so no event filter is needed, which would receive every
    event of every widget.
    """

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self._waiting: list[Path] = []
        self._open: Callable[[Path], None] | None = None

    def open_with(self, opener: Callable[[Path], None]) -> bool:
        """Call ``opener`` with each requested file from now on, beginning with those already waiting.

        Return whether any were waiting.
        """
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
            return False  # a URL that is not a file
        if self._open is None:
            self._waiting.append(Path(name))
        else:
            self._open(Path(name))
        return True
