"""Timing of the stages of an update."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """A stopwatch with named laps.

    Args:
        synchronize: waits until what was asked for has been computed.

    Attributes:
        seconds: lap -> seconds.
    """

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Count the time since the last lap as that of ``name``."""
        self._synchronize()
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
