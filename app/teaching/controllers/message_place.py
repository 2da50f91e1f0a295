"""The place where messages appear when presenting: the speaker's window or, with one screen, behind a marker."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QApplication

from app.messages.overlay import Place
from app.teaching.controllers.presenter import Presenter
from app.teaching.presenting.screens import screens
from app.window.main_window import MainWindow


class MessagePlace(QObject):
    """Moves the messages when presenting begins or ends.

    It also moves them when the speaker's window or a screen appears or disappears.
    """

    def __init__(self, window: MainWindow, presenter: Presenter, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._presenter = window, presenter
        presenter.active_changed.connect(self.refresh)
        presenter.speaker.changed.connect(self.refresh)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        queued = Qt.ConnectionType.QueuedConnection
        application.screenAdded.connect(self.refresh, queued)
        application.screenRemoved.connect(self.refresh, queued)

    @Slot()
    def refresh(self) -> None:
        """Show the messages where the class does not see them or, when not presenting, over the window."""
        overlay, speaker = self._window.overlay, self._presenter.speaker
        if not self._presenter.active:
            overlay.show_in(Place.WINDOW)
        elif speaker.isVisible() and len(screens()) > 1:
            speaker.hold_messages(self._window.messages)
            overlay.show_in(Place.ELSEWHERE)
        else:
            overlay.show_in(Place.MARK)
