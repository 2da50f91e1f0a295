"""The controller of rehearsals, which check the open lesson in the background before it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.teaching.controllers.lessons import LessonController
from app.window.main_window import MainWindow

if TYPE_CHECKING:
    from app.teaching.export.rehearsal_window import RehearsalWindow


class RehearsalController(QObject):
    """Starts rehearsals of the open lesson, one at a time.

    Attributes:
        window: the window of the latest rehearsal; None before the first.
    """

    def __init__(self, window: MainWindow, lessons: LessonController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._lessons = window, lessons
        self.window: RehearsalWindow | None = None

    def start(self) -> None:
        """Rehearse the open lesson, replacing any earlier rehearsal."""
        from app.teaching.export.rehearsal_window import RehearsalWindow

        lesson = self._lessons.player.lesson
        if lesson is not None:
            self.close()
            self.window = RehearsalWindow(lesson, self._window)
            self.window.start(self._lessons.called)
            self.window.show()

    def close(self) -> None:
        """Stop the rehearsal when the program closes."""
        if self.window is not None:
            self.window.close()
            self.window.deleteLater()
            self.window = None
