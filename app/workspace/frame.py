"""The one frame timer: at most 30 frames a second, half of the time at most, none while nothing changes."""

from __future__ import annotations

import time

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer, Signal, Slot

INTERVAL_MS = 33
PAINTED = QEvent.Type.User
AFTER_PAINTING = -10
"""Priority of an event that is to come after Qt's own request to paint, which has −1."""


class FrameTimer(QObject):
    """Ticks while there is work, then rests.

    Between two frames it rests at least as long as the frame took, so that a slow picture leaves half of the
    interpreter to the worker.

    Signals:
        tick: a frame is due.
        drawn: the frame that was due is drawn, and painted where Qt paints by events.
    """

    tick = Signal()
    drawn = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self._on_timeout)
        self._wanted = False
        self._live = False
        self._began = 0.0

    def request(self) -> None:
        """A frame soon: at once if the timer rests, with the next tick if it runs."""
        self._wanted = True
        if not self._timer.isActive():
            self._timer.start(0)

    def set_live(self, live: bool) -> None:
        """Tick on and on while updates may arrive."""
        self._live = live
        if live:
            self.request()

    @Slot()
    def _on_timeout(self) -> None:
        if not (self._wanted or self._live):
            self._timer.stop()
            return
        if self._timer.interval() != INTERVAL_MS:
            self._timer.setInterval(INTERVAL_MS)
        self._wanted = False
        self._began = time.perf_counter()
        self.tick.emit()
        QCoreApplication.postEvent(self, QEvent(PAINTED), AFTER_PAINTING)

    def customEvent(self, event: QEvent) -> None:
        """The event that comes after painting."""
        took = round(1000 * (time.perf_counter() - self._began))
        if self._timer.isActive():
            self._timer.start(max(INTERVAL_MS - took, took))
        self.drawn.emit()

    def stop(self) -> None:
        """No more frames."""
        self._wanted = self._live = False
        self._timer.stop()
