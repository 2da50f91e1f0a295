"""Results of a sweep: final values, curves over training, and the median seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.experiments.sweep import theory
from app.experiments.sweep.plan import Sweep
from grpo_core.experiments.ensemble import Ensemble, band
from grpo_core.text import plural, tr

UNITS = {"kl": "nats", "reward": ""}
TITLES = {"kl": "KL", "reward": tr("Reward")}
CENTRES = {"kl": tr("median"), "reward": tr("mean")}
"""The measure of the centre of the seeds that is drawn, as in the headline. A diverged KL is infinite, so KL uses the
median."""
DIVERGED = tr("at least half of the runs diverged there: their numbers overflowed, so there is no median")


class Spread(NamedTuple):
    """The centre of the seeds (:data:`CENTRES`) and the limits of their middle half, (n,) each. NaN where not computed
    yet."""

    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


class SweepResults:
    """The points of a sweep, added as they come in.

    Attributes:
        sweep: the plan.
        done: (place, row) -> its runs.
        note: the reason for missing points; empty while they are being computed and when they are complete.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.done: dict[tuple[int, int], Ensemble] = {}
        self.note = ""
        self._keys = sweep.keys
        self._final: dict[tuple[str, int, int], Spread] = {}
        self._optimum: dict[int, dict[str, np.ndarray]] = {}

    def take(self, runs: Ensemble) -> None:
        """Add the next point."""
        self.done[self._keys[len(self.done)]] = runs

    @property
    def wanted(self) -> int:
        """Total number of points."""
        return len(self._keys)

    @property
    def count(self) -> int:
        """Number of points computed so far."""
        return len(self.done)

    @property
    def complete(self) -> bool:
        """Whether every point has been computed."""
        return self.count == self.wanted

    @property
    def so_far(self) -> str:
        """A sentence on how many of all points have been computed."""
        return plural(
            "As far as it got: {count} of {wanted} place.", "As far as it got: {count} of {wanted} places.", self.wanted
        ).format(count=self.count, wanted=self.wanted)

    def final(self, measure: str, row: int = 0) -> Spread:
        """Spread of a measure after the last update, at every place."""
        key = (measure, row, len(self.done))
        if key not in self._final:
            known = [(place, self.done.get((place, row))) for place in range(len(self.sweep.over.values))]
            there = [place for place, runs in known if runs is not None]
            spread = np.full((3, len(known)), np.nan)
            if there:
                spread[:, there] = spread_of(
                    np.stack([self.done[place, row].counted(measure)[-1] for place in there]), measure
                )
            self._final[key] = Spread(*spread)
        return self._final[key]

    def optimum(self, row: int = 0) -> dict[str, np.ndarray]:
        """The theoretical optimum along the axis. See :func:`theory.optimum`."""
        if row not in self._optimum:
            self._optimum[row] = theory.optimum(self.sweep, row)
        return self._optimum[row]

    def has_optimum(self) -> bool:
        """Whether theory gives a point anywhere on the axis."""
        return any(len(self.optimum(row)["place"]) for row in range(len(self.sweep.rows)))


def row_line(row: int) -> str:
    """Name of the line for a row, which is one value of the second setting."""
    return f"row {row}"


def spread_of(values: np.ndarray, measure: str) -> Spread:
    """The spread over the seeds, which are the last axis of ``values``."""
    median, low, high = band(values)
    middle = {"kl": median, "reward": values.mean(axis=-1)}[measure]
    return Spread(middle, low, high)


def titled(measure: str) -> str:
    """A measure's title with the kind of centre drawn, for an axis or a column."""
    return tr("{titles}, {centre}").format(titles=TITLES[measure], centre=CENTRES[measure])


def course(runs: Ensemble, measure: str) -> Spread:
    """Spread of a measure over training, update 0 first, (U + 1,)."""
    return spread_of(runs.counted(measure), measure)


def middle_seed(runs: Ensemble, measure: str = "kl") -> int:
    """Index of the seed whose last value is the (lower) median of all."""
    order = np.argsort(runs.counted(measure)[-1], kind="stable")
    return int(order[(len(order) - 1) // 2])
