"""The beat of numbers that are read: nobody reads sixty different ones a second."""

from __future__ import annotations

import time
from collections.abc import Callable

BEAT = 0.1
"""Seconds between two beats."""


class Pulse:
    """What calm panels show of a run that hurries on: where it stood at the last beat. One for the whole window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: object = None
        self._at = -BEAT

    def shown(self, now: object, *, hurries: bool) -> object:
        """``now``, or, while the run hurries on, what it was at the last beat."""
        moment = self._clock()
        if not hurries or moment - self._at >= BEAT:
            self._shown, self._at = now, moment
        return self._shown
