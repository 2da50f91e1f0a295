"""Timing of the stages of an update.

No explicit synchronisation with the device is needed: each stage ends with numbers read by the host, except the
optimizer's last step, whose time on a GPU is counted in the following stage.
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
        """Store the time since the last lap under ``name``."""
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
