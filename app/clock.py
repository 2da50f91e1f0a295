"""The clock of the window: what time it is, and calls that come later, once or again and again.

Whatever waits in the window waits by this clock. A test replaces it with a clock that it moves by hand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from PySide6.QtCore import QObject, QTimer, SignalInstance
from shiboken6 import Shiboken


class Clock:
    """Real time.

    Attributes:
        ahead: seconds by which it was set ahead.
    """

    ahead = 0.0

    def now(self) -> float:
        """Return the seconds on a monotonic clock."""
        return time.monotonic() + self.ahead


class ManualClock(Clock):
    """A clock that moves only when :meth:`advance` is called. Timers without a delay do not depend on it."""

    def __init__(self) -> None:
        self._now = 1000.0 * math.ceil(_clock.now())
        self.started: dict[Timer, float] = {}
        """The milliseconds at which timers were started."""

    def now(self) -> float:
        return self._now / 1000

    def add(self, timer: Timer) -> None:
        """Let ``timer`` begin now."""
        self.started[timer] = self._now

    def advance(self, ms: float) -> None:
        """Let ``ms`` milliseconds pass, then call in order whatever is due, each timer once."""
        self._now += ms
        for timer in sorted(self.active, key=self._left):
            if timer not in self.active or self._left(timer) > 0:
                continue
            if timer.isSingleShot():
                del self.started[timer]
            else:
                self.started[timer] = self._now
            timer.timeout.emit()

    @property
    def active(self) -> list[Timer]:
        """The active timers, but for those whose owners are deleted."""
        return [timer for timer in self.started if Shiboken.isValid(timer)]

    def _left(self, timer: Timer) -> float:
        return self.started[timer] + timer.interval() - self._now


_clock = Clock()


def now() -> float:
    """Return the seconds on the window's clock, which never goes back."""
    return _clock.now()


def skip(seconds: float) -> None:
    """Let the window's clock jump ahead, which ends films. Active timers go on as they were."""
    _clock.ahead += seconds


@contextmanager
def manual() -> Iterator[ManualClock]:
    """Move the window's clock by hand. Timers that are active before or still active afterwards go on in real time."""
    global _clock
    real, _clock = _clock, (by_hand := ManualClock())
    try:
        yield by_hand
    finally:
        _clock = real
        real.ahead += max(by_hand.now() - real.now(), 0.0)
        for timer in by_hand.active:
            timer.start()


def soon(owner: QObject, call: Callable[[], object]) -> None:
    """Call once when pending events are done with, unless ``owner`` is deleted before."""
    QTimer.singleShot(0, owner, call)


class Timer(QTimer):
    """Calls a function after some milliseconds: once, or again and again until it is stopped.

    Attributes:
        clock: a clock of its own; None for that of the window.
    """

    def __init__(
        self,
        parent: QObject | None,
        call: Callable[..., Any] | SignalInstance,
        ms: int = 0,
        *,
        repeats: bool = False,
    ) -> None:
        super().__init__(parent)
        self.clock: Clock | None = None
        self.setSingleShot(not repeats)
        self.setInterval(ms)
        self.timeout.connect(call)

    def now(self) -> float:
        """Return the seconds on its clock."""
        return (self.clock or _clock).now()

    def start(self, ms: int | None = None) -> None:
        """Start, or start anew, with the last delay if ``ms`` is None."""
        self.stop()
        if ms is not None:
            self.setInterval(ms)
        if (by_hand := self._by_hand) is not None and self.interval():
            by_hand.add(self)
        else:
            super().start()

    def start_if_idle(self) -> None:
        """Start unless it is active: calls are then at least its delay apart."""
        if not self.isActive():
            self.start()

    def stop(self) -> None:
        super().stop()
        if (by_hand := self._by_hand) is not None:
            by_hand.started.pop(self, None)

    def isActive(self) -> bool:
        return super().isActive() or ((by_hand := self._by_hand) is not None and self in by_hand.started)

    @property
    def _by_hand(self) -> ManualClock | None:
        clock = self.clock or _clock
        return clock if isinstance(clock, ManualClock) else None
