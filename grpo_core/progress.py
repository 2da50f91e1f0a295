"""Progress of an update in progress: said now and then by whoever computes it, and by nobody where it is quick."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

QUIET = 0.5
"""Seconds of an update in which nothing is reported: most updates are over by then."""
INTERVAL = 0.1
"""Seconds between two reports of one phase; a new phase is reported at once."""


class Phase(Enum):
    """Phases of an update of a language model, in order."""

    SAMPLING = "sampling"
    REFERENCE = "reference"
    MEASURING = "measuring"
    TRAINING = "training"
    SCORING = "scoring"


@dataclass(frozen=True, kw_only=True)
class Written:
    """The completions of one group as far as they have been sampled. The end sign is a token of its own.

    Attributes:
        group: number of the group in the update, from 0.
        prompt: its tokens.
        completions: (G,) the tokens of each.
        ended: (G,) whether a completion is complete, or as long as is allowed.
    """

    group: int
    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    ended: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of an update.

    Attributes:
        step: number of the update.
        phase: what is being computed.
        done: number of the token, chunk of rows or pass that is being computed, from 1; 0 where they are not counted.
        total: how many there are at most; 0 where they are not counted.
        written: the completions of the group that is watched, while they are sampled and once after that; None where
            they are those of the report before, or nobody can tell.
        groups: (P,) while completions are sampled, the written share of each group, from 0 to 1: the mean over its
            completions of tokens drawn over tokens allowed, 1 for a completion that has ended. Empty otherwise.
    """

    step: int
    phase: Phase
    done: int = 0
    total: int = 0
    written: Written | None = None
    groups: tuple[float, ...] = ()

    @property
    def share(self) -> float | None:
        """The written share of all completions, from 0 to 1. None where that is not known."""
        return sum(self.groups) / len(self.groups) if self.groups else None

    def after(self, before: Progress | None) -> Progress:
        """This report with the completions of the one before it, where it holds none and is of the same update."""
        if self.written is not None or before is None or before.step != self.step:
            return self
        return replace(self, written=before.written)


def nothing_written(group: int) -> Written | None:
    """The progress of a group where nothing is sampled."""
    return None


def no_groups() -> tuple[float, ...]:
    """The written shares of the groups where nothing is sampled."""
    return ()


class UpdateProgress:
    """Reports how far each update is, not before ``quiet`` and at most once in :data:`INTERVAL` for each phase.

    Args:
        report: takes what is reported.
        clock: seconds that never jump.
        quiet: seconds of an update in which nothing is reported, 0 where every update is long; by default
            :data:`QUIET`.
        group: the number of the group whose completions are watched; asked at every report.
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
        self._written: Callable[[int], Written | None] = nothing_written
        self._groups: Callable[[], tuple[float, ...]] = no_groups
        self._watched: int | None = None  # the group of the last report that held completions
        self._complete = False  # whether that was told when all was sampled
        self._began, self._written_due = 0.0, float("-inf")
        self._quiet_until = self._due = float("inf")
        self._last: Progress | None = None

    def begin(
        self, step: int, written: Callable[[int], Written | None] = nothing_written,
        groups: Callable[[], tuple[float, ...]] = no_groups,
    ) -> None:  # fmt: skip
        """Update ``step`` begins now. ``written`` reads what has been sampled of a group, ``groups`` how much of each,
        only where it is reported."""
        self._step, self._last, self._written, self._watched, self._complete = step, None, written, None, False
        self._groups = groups
        self._began = self._clock()
        self._quiet_until = self._due = self._began + (QUIET if self._quiet is None else self._quiet)

    def at(self, phase: Phase, done: int = 0, total: int = 0) -> None:
        """The update is at ``done`` of ``total`` in ``phase``, both 0 where they are not counted."""
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
        """The completions, where they are others than at the last report: at most once in :data:`INTERVAL`, and once
        more as soon as all are sampled in an update that is longer than that."""
        group, samples = self._group(), phase is Phase.SAMPLING
        final = not samples and not self._complete and now >= self._began + INTERVAL
        if (self._complete and group == self._watched) or not (final or now >= self._written_due):
            return None
        self._watched, self._complete, self._written_due = group, not samples, now + INTERVAL
        return self._written(group)


def unreported(progress: Progress) -> None:
    """For an update of which nobody wants to know how far it is."""
