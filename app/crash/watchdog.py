"""Log entries that say when and for how long the window's thread was blocked for more than a second.

The watchdog is idle whenever the window is: anything that wakes the window (input, a command, a frame) arms it, and
it stays armed until a quarter of a second has passed without any such event. While it is idle, neither a timer nor a
thread runs.

Qt's own signals of its event loop, ``awake`` and ``aboutToBlock``, cannot arm it, because under GLib, that is on Linux,
events are handled between ``aboutToBlock`` and ``awake``. A call during which no other Python code can run is noticed
only once it has ended.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path
from types import CodeType

from PySide6.QtCore import QEvent, QObject, QTimer, Slot

LIMIT = 1.0
"""Seconds without activity after which a blocked thread is logged."""
BEAT_MS = 250
"""Milliseconds between two heartbeats of a busy thread."""
DEEPEST = 12
"""Maximum number of stack lines that are logged, innermost first."""

_log = logging.getLogger(__name__)


class Watchdog(QObject):
    """Watches the thread in which it was created.

    Attributes:
        armed: whether the window is active, so that blocking would be logged.
    """

    def __init__(self, parent: QObject | None = None, *, limit: float = LIMIT) -> None:
        super().__init__(parent)
        self._limit = limit
        self._alive = 0.0
        self._woken = False
        self._awake = threading.Event()
        self._closing = threading.Event()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._on_timeout)
        self._thread = threading.Thread(target=self._watch, args=(threading.get_ident(),), name="watchdog", daemon=True)
        self._thread.start()

    @property
    def armed(self) -> bool:
        return self._awake.is_set()

    @Slot()
    def wake(self) -> None:
        """Record activity of the window's thread.

        This has to be cheap, because it is called with every frame and every input.
        """
        self._woken = True
        if not self._awake.is_set():
            self._alive = time.monotonic()
            self._awake.set()
            self._timer.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Record system events (keys, mouse, size, exposure).

        The filter is installed only on a native window, which receives no other events.
        """
        if not self._closing.is_set():
            self.wake()
        return False

    def close(self) -> None:
        self._closing.set()
        self._awake.set()
        self._timer.stop()
        self._thread.join()

    @Slot()
    def _on_timeout(self) -> None:
        self._alive = time.monotonic()
        if self._woken:
            self._woken = False
            self._timer.start()
        else:
            self._awake.clear()

    def _watch(self, watched: int) -> None:
        """Run the watching thread. ``watched`` is the ID of the watched thread."""
        while self._awake.wait() and not self._closing.is_set():
            alive = self._alive
            quiet = time.monotonic() - alive
            if quiet < self._limit:
                late = self._sleep(self._limit - quiet)
                if late > self._limit:
                    _log.info(
                        "the whole program stood still for %.1f s: stopped or suspended, or held by one call", late
                    )
                    self._sleep(self._limit / 2)  # first the window's thread has to show that it is running again
            elif self._awake.is_set():
                _log.info("the window's thread stands still for %.1f s, at %s", quiet, stack_of(watched))
                while self._alive == alive and not self._closing.is_set():
                    self._sleep(self._limit / 4)
                _log.info("the window's thread goes on after %.1f s", time.monotonic() - alive)

    def _sleep(self, seconds: float) -> float:
        """Sleep until ``seconds`` have passed or :meth:`close` is called.

        Return by how many seconds this took longer than requested.
        """
        begun = time.monotonic()
        self._closing.wait(seconds)
        return time.monotonic() - begun - seconds


def stack_of(thread: int) -> str:
    """Return the current stack of a thread on one line: file, line and function, innermost first.

    No reference to a frame is kept once the frame has been read, because a reference would keep the frame's painter
    alive after its function and the paint device are gone, which would crash the process.
    """
    frame = sys._current_frames().get(thread)
    places: list[tuple[CodeType, int]] = []
    while frame is not None and len(places) < DEEPEST:
        places.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    del frame
    lines = [f"{Path(code.co_filename).name}:{line} {code.co_name}" for code, line in places]
    return " < ".join(lines) or "an unknown place"
