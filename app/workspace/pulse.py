"""How often numbers change that people read: ten times a second, for nobody reads sixty different ones."""

from __future__ import annotations

import time
from collections.abc import Callable

BEAT = 0.1
"""Seconds between two beats."""


class Pulse:
    """What panels with ``calm`` show of a run that trains fast: where it stood at the last beat, one beat for all."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: object = None
        self._at = self._changed = -BEAT

    def shown(self, now: object, *, hurries: bool) -> object:
        """``now``, or, while the run hurries on, what it was at the last beat.

        What comes after a rest longer than a beat is shown at once, also between two beats.
        """
        moment = self._clock()
        changes = now != self._shown
        if not hurries or moment - self._at >= BEAT or (changes and moment - self._changed >= BEAT):
            self._shown, self._at = now, moment
            self._changed = moment if changes else self._changed
        return self._shown
