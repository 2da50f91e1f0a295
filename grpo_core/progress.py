"""How far an update in progress is: said now and then by whoever computes it, and by nobody where it is quick."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

QUIET = 0.5
"""Seconds of an update in which nothing is reported: most updates are over by then."""
INTERVAL = 0.1
"""Seconds between two reports of one phase; a new phase is reported at once."""


class Phase(Enum):
    """What an update of a language model spends its time on, in order."""

    SAMPLING = "sampling"
    REFERENCE = "reference"
    MEASURING = "measuring"
    TRAINING = "training"
    SCORING = "scoring"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where an update stands.

    Attributes:
        step: number of the update.
        phase: what is being computed.
        done: number of the token, chunk of rows or pass that is being computed, from 1; 0 where they are not counted.
        total: how many there are at most; 0 where they are not counted.
    """

    step: int
    phase: Phase
    done: int = 0
    total: int = 0


class UpdateProgress:
    """Reports how far each update is, not before ``quiet`` and at most once in :data:`INTERVAL` for each phase.

    Args:
        report: takes what is reported.
        clock: seconds that never jump.
        quiet: seconds of an update in which nothing is reported, 0 where every update is long; by default
            :data:`QUIET`.
    """

    def __init__(
        self,
        report: Callable[[Progress], None],
        clock: Callable[[], float] = time.monotonic,
        quiet: float | None = None,
    ) -> None:
        self._report, self._clock, self._quiet = report, clock, quiet
        self._step = 0
        self._quiet_until = self._due = float("inf")
        self._last: Progress | None = None

    def begin(self, step: int) -> None:
        """Update ``step`` begins now."""
        self._step, self._last = step, None
        self._quiet_until = self._due = self._clock() + (QUIET if self._quiet is None else self._quiet)

    def at(self, phase: Phase, done: int = 0, total: int = 0) -> None:
        """The update is at ``done`` of ``total`` in ``phase``, both 0 where they are not counted."""
        now = self._clock()
        another_phase = self._last is None or phase is not self._last.phase
        if now < (self._quiet_until if another_phase else self._due):
            return
        progress = Progress(step=self._step, phase=phase, done=done, total=total)
        if progress != self._last:
            self._last, self._due = progress, now + INTERVAL
            self._report(progress)


def unreported(progress: Progress) -> None:
    """For an update of which nobody wants to know how far it is."""
