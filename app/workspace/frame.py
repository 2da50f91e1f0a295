"""The only frame timer: at most 60 frames per second, a pause after each, and no frames while nothing changes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

INTERVAL_MS = 1000 / 60
"""Milliseconds between two deadlines. Each is one interval after the previous one, so that frames are evenly spaced."""
SLICE_MS = 1.5
"""Milliseconds of processor time after which a frame drawn in parts lets input be handled before its next part."""
REST = 0.1
"""Idle time after a frame, as a share of the frame's processor time.

It leaves time for the rest of the window's work.
"""


class FrameTimer(QObject):
    """A timer that ticks while there is something to draw, and then stops.

    The cost of a frame is measured as processor time of this thread, so that frames become late on a busy machine,
    but not fewer. If a run is computed in this process, the timer pauses for as long as the frame took: because of
    Python's global interpreter lock, the run's thread gets only the time in which this thread is idle.

    A frame can be drawn in parts. Between slices of :data:`SLICE_MS`, pending input is handled, and nothing is waited
    for: a thread that slept would have to wait for a processor again on a busy machine.

    Attributes:
        shared: whether a run is computed in this process.
        cost: milliseconds of this thread's processor time for drawing and painting the last frame.

    Signals:
        tick: emitted when a frame is due.
        drawn: emitted when the frame has been drawn and painted.
    """

    tick = Signal()
    drawn = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_timeout)
        self.shared = False
        self._wanted = False
        self._live = False
        self._drawing = False
        self._parts: deque[Callable[[], object]] = deque()
        """What remains to be done for the frame being drawn."""
        self.cost = 0.0
        self._began = self._spent = 0.0
        self._deadline = 0.0
        """The time at which the last or the next frame is due, in milliseconds of :func:`time.perf_counter`."""

    def request(self) -> None:
        """Request a frame: immediately if the timer is idle, otherwise with the next tick."""
        self._wanted = True
        if not (self._timer.isActive() or self._drawing):
            self._timer.start(0)

    def add_parts(self, parts: Iterable[Callable[[], object]]) -> None:
        """Add parts to the frame being drawn, which are done after the tick and after the parts added before."""
        self._parts.extend(parts)

    def complete(self) -> None:
        while self._parts:
            self._parts.popleft()()

    def set_live(self, live: bool) -> None:
        """Set whether to tick continually because updates may arrive."""
        self._live = live
        if live:
            self.request()

    @Slot()
    def _on_timeout(self) -> None:
        if self._drawing:
            if self._parts:
                self._draw_slice()
            else:
                self._finish()
            return
        if not (self._wanted or self._live):
            return
        self._wanted = False
        self._drawing = True
        self._began, self._spent = time.perf_counter(), time.thread_time()
        if 1000 * self._began - self._deadline > INTERVAL_MS:  # the timer was idle
            self._deadline = 1000 * self._began
        try:
            self.tick.emit()
        finally:
            if self._drawing:  # not stopped in the meantime
                self._timer.start(0)  # after all painting requested during the tick

    def _draw_slice(self) -> None:
        end = time.thread_time() + SLICE_MS / 1000
        try:
            while self._parts:
                self._parts.popleft()()
                if time.thread_time() > end:
                    break
        finally:
            if self._drawing:
                self._timer.start(0)

    def _finish(self) -> None:
        self._drawing = False
        self.cost = 1000 * (time.thread_time() - self._spent)
        self._timer.start(round(self.rest(self.cost)))
        self.drawn.emit()

    def rest(self, spent: float) -> float:
        """Return how many milliseconds to wait after a frame that took ``spent`` milliseconds of processor time.

        The next deadline is one interval after the last one. A frame that is more than an interval late restarts the
        count.
        """
        now = 1000 * time.perf_counter()
        took = now - 1000 * self._began
        least = took if self.shared else REST * spent
        due = self._deadline + INTERVAL_MS
        self._deadline = due if due >= now + least else now + least
        return max(self._deadline - now, 0.0)

    def stop(self) -> None:
        """Complete the frame being drawn, cancel any requested one, and ignore later requests."""
        self.complete()
        self._wanted = self._live = self._drawing = False
        self._timer.stop()
        self._timer.blockSignals(True)
