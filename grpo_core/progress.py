"""Progress reports of a running update, sent only if it takes a long time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

QUIET = 0.5
"""Time in seconds from the start of an update to the first report. Most updates are finished by then."""
INTERVAL = 0.1
"""Minimum number of seconds between two reports of one phase. A new phase is reported at once."""


def unpolled(fraction: float = 0.0) -> None:
    """Do nothing: the poll of what is too short to interrupt, or has nobody who would."""


class Phase(Enum):
    """Phases of a language model's update, in order."""

    SAMPLING = "sampling"
    REFERENCE = "reference"
    MEASURING = "measuring"
    TRAINING = "training"
    SCORING = "scoring"


@dataclass(frozen=True, kw_only=True)
class Written:
    """The completions of one group as sampled so far. The end-of-sequence token counts as a token.

    Attributes:
        group: index of the group in the update.
        completions: (G,) the tokens of each.
        ended: (G,) whether a completion has ended or reached the maximum length.
    """

    group: int
    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    ended: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of an update.

    Attributes:
        done: the token, chunk of rows or pass in progress, counted from 1; 0 in phases without a count.
        total: the largest value of ``done``; 0 in phases without a count.
        written: the completions of the watched group, during sampling and once afterwards; None if they are unchanged
            since the last report, or unknown.
        groups: (P,) the share of each group written so far during sampling, from 0 to 1: the mean over its completions
            of tokens drawn over tokens allowed, 1 for a completion that has ended. Empty otherwise.
    """

    step: int
    phase: Phase
    done: int = 0
    total: int = 0
    written: Written | None = None
    groups: tuple[float, ...] = ()

    @property
    def share(self) -> float | None:
        """Share of all completions that has been written so far, from 0 to 1. None if unknown."""
        return sum(self.groups) / len(self.groups) if self.groups else None

    def after(self, before: Progress | None) -> Progress:
        """Return this report with the completions of ``before``, if it has none and is of the same update."""
        if self.written is not None or before is None or before.step != self.step:
            return self
        return replace(self, written=before.written)


class UpdateProgress:
    """Reporter of the progress of each update, first after ``quiet`` seconds and then at most once per :data:`INTERVAL`
    and phase.

    Args:
        clock: monotonic clock, in seconds.
        quiet: seconds of an update in which nothing is reported, 0 if every update is long; by default :data:`QUIET`.
        group: returns the index of the group whose completions are watched; called for every report.
    """

    def __init__(
        self,
        report: Callable[[Progress], None],
        clock: Callable[[], float] = time.monotonic,
        quiet: float | None = None,
        group: Callable[[], int] = lambda: 0,
    ) -> None:
        self._report, self._clock, self._quiet, self._group = report, clock, quiet, group
        self._step = 0
        self._written: Callable[[int], Written | None] = lambda group: None
        self._groups: Callable[[], tuple[float, ...]] = tuple
        self._watched: int | None = None  # group of the last report with completions
        self._complete = False  # whether the final completions were reported
        self._began, self._written_due = 0.0, float("-inf")
        self._quiet_until = self._due = float("inf")
        self._last: Progress | None = None

    def begin(
        self,
        step: int,
        written: Callable[[int], Written | None] = lambda group: None,
        groups: Callable[[], tuple[float, ...]] = tuple,
    ) -> None:
        """Begin update ``step``. ``written`` returns the completions of a group sampled so far, ``groups`` the written
        share of each group; both are called only when a report is due. Without them, the update samples nothing.
        """
        self._step, self._last, self._written, self._watched, self._complete = step, None, written, None, False
        self._groups = groups
        self._began = self._clock()
        self._quiet_until = self._due = self._began + (QUIET if self._quiet is None else self._quiet)

    def at(self, phase: Phase, done: int = 0, total: int = 0) -> None:
        """Report that the update is at ``done`` of ``total`` in ``phase``. Both are 0 in phases without a count."""
        now = self._clock()
        another_phase = self._last is None or phase is not self._last.phase
        if now < (self._quiet_until if another_phase else self._due):
            return
        written = self._fresh(phase, now)
        groups = self._groups() if phase is Phase.SAMPLING else ()
        progress = Progress(step=self._step, phase=phase, done=done, total=total, written=written, groups=groups)
        if self._last is None or written is not None or progress != replace(self._last, written=None):
            self._last, self._due = progress, now + INTERVAL
            self._report(progress)

    def _fresh(self, phase: Phase, now: float) -> Written | None:
        """Return the completions if they have changed since the last report, at most once per :data:`INTERVAL`, and
        once more when sampling ends in an update longer than that.
        """
        group, samples = self._group(), phase is Phase.SAMPLING
        final = not samples and not self._complete and now >= self._began + INTERVAL
        if (self._complete and group == self._watched) or not (final or now >= self._written_due):
            return None
        self._watched, self._complete, self._written_due = group, not samples, now + INTERVAL
        return self._written(group)


def unreported(progress: Progress) -> None:
    """Ignore a report: the callback for use without a progress display."""
