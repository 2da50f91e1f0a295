"""Timing of the stages of an update.

Nobody waits for the device at the end of a stage: each ends with numbers that the host has read, except the optimizer's
last step, whose time on a device counts to the stage after it.
"""

from __future__ import annotations

import time


class Clock:
    """A stopwatch with named laps.

    Attributes:
        seconds: lap -> seconds.
    """

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Count the time since the last lap as that of ``name``."""
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
