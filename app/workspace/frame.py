"""The one frame timer: at most 30 frames a second, none while nothing changes."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

INTERVAL_MS = 33


class FrameTimer(QObject):
    """Ticks while there is work, then rests.

    Signals:
        tick: a frame is due.
    """

    tick = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self._on_timeout)
        self._wanted = False
        self._live = False

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
        self.tick.emit()

    def stop(self) -> None:
        """No more frames."""
        self._wanted = self._live = False
        self._timer.stop()
