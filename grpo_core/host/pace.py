"""The pace of a run: a number of updates per second on a monotonic clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Determines when the next update is due. The caller waits, so that a command can end the wait."""

    def __init__(self, speed: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._interval = 0.0
        self._due = clock()
        self.set_speed(speed)

    def set_speed(self, speed: float | None) -> None:
        """Set the number of updates per second, above 0. None for as many as possible. Applies to the wait in
        progress.
        """
        began = self._due - self._interval
        self._interval = 1 / speed if speed else 0.0
        self._due = began + self._interval

    @property
    def limited(self) -> bool:
        """Whether a speed is set, rather than as many updates as possible."""
        return self._interval > 0

    def restart(self) -> None:
        """Make the next update due now."""
        self._due = self._clock()

    def delay(self) -> float:
        """Return the seconds until the next update is due. 0 if it is due now."""
        return max(0.0, self._due - self._clock()) if self._interval else 0.0

    def began(self) -> None:
        """Record that an update begins now. Small delays are made up for, so that the average holds; long ones are
        ignored.
        """
        now = self._clock()
        late = now - self._due
        self._due = (self._due if 0 <= late < self._interval else now) + self._interval
