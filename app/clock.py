"""The clock of the window: the current time, and timers that call functions once or repeatedly.

Everything in the window that waits uses this clock. Tests replace it with a clock that they advance by hand.
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
    """A clock that shows real time.

    Attributes:
        ahead: seconds by which it is ahead of the monotonic clock, as set by :func:`skip`.
    """

    ahead = 0.0

    def now(self) -> float:
        """Return the time in seconds, which never decreases."""
        return time.monotonic() + self.ahead


class ManualClock(Clock):
    """A clock that advances only when :meth:`advance` is called. Timers without a delay do not use it."""

    def __init__(self) -> None:
        self._now = 1000.0 * math.ceil(_clock.now())
        self.started: dict[Timer, float] = {}
        """Active timer -> the time in milliseconds at which its current interval began."""

    def now(self) -> float:
        return self._now / 1000

    def add(self, timer: Timer) -> None:
        """Start ``timer`` at the current time."""
        self.started[timer] = self._now

    def advance(self, ms: float) -> None:
        """Advance by ``ms`` milliseconds, then let each timer that is due fire once, in chronological order."""
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
        """The active timers, except those whose owners have been deleted."""
        return [timer for timer in self.started if Shiboken.isValid(timer)]

    def _left(self, timer: Timer) -> float:
        return self.started[timer] + timer.interval() - self._now


_clock = Clock()


def now() -> float:
    """Return the time on the window's clock in seconds, which never decreases."""
    return _clock.now()


def skip(seconds: float) -> None:
    """Set the window's clock ahead, which ends films. Active timers are not affected."""
    _clock.ahead += seconds


def eased(share: float) -> float:
    """Return the share of the way covered after ``share`` of the time, with a slow start and a slow end."""
    return share * share * (3 - 2 * share)


@contextmanager
def manual() -> Iterator[ManualClock]:
    """Replace the window's clock with one that is advanced by hand.

    Timers that are active before, or still active afterwards, run in real time.
    """
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
    """Call ``call`` once after all pending events have been processed, unless ``owner`` is deleted before that."""
    QTimer.singleShot(0, owner, call)


class Timer(QTimer):
    """A timer that calls a function after some milliseconds, once or repeatedly until it is stopped.

    Attributes:
        clock: the timer's own clock, or None for the window's clock.
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
        return (self.clock or _clock).now()

    def start(self, ms: int | None = None) -> None:
        """Start or restart the timer with a delay of ``ms``, or with its previous delay if ``ms`` is None."""
        self.stop()
        if ms is not None:
            self.setInterval(ms)
        if (by_hand := self._by_hand) is not None and self.interval():
            by_hand.add(self)
        else:
            super().start()

    def start_if_idle(self) -> None:
        """Start the timer unless it is active. Its calls are then at least one delay apart."""
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
