"""Results of a sweep: final values, curves over training, and which seed is the middle one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.experiments.sweep import theory
from app.experiments.sweep.plan import Sweep
from grpo_core.experiments.ensemble import Ensemble, band
from grpo_core.text import tr

UNITS = {"kl": "nats", "reward": ""}
TITLES = {"kl": "KL", "reward": tr("Reward")}
CENTRES = {"kl": tr("median"), "reward": tr("mean")}
"""The middle of the seeds that is drawn: the one that the headline speaks of. A KL that diverged is infinite, so it has
a median alone."""
DIVERGED = tr("at least half of the runs diverged there: their numbers overflowed, so there is no median")


class Spread(NamedTuple):
    """The middle of the seeds (:data:`CENTRES`) and the limits of their middle half, (n,) each. NaN where nothing is
    known yet."""

    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


class SweepResults:
    """The points of a sweep as they come.

    Attributes:
        sweep: what was asked for.
        done: (place, row) -> the runs there.
        note: why not all have come; empty while they come and once they have.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.done: dict[tuple[int, int], Ensemble] = {}
        self.note = ""
        self._keys = sweep.keys
        self._final: dict[tuple[str, int, int], Spread] = {}
        self._optimum: dict[int, dict[str, np.ndarray]] = {}

    def take(self, runs: Ensemble) -> None:
        """The next point has come."""
        self.done[self._keys[len(self.done)]] = runs

    @property
    def wanted(self) -> int:
        """Number of points in all."""
        return len(self._keys)

    @property
    def count(self) -> int:
        """Number of points that have come."""
        return len(self.done)

    @property
    def complete(self) -> bool:
        """Whether every point has come."""
        return self.count == self.wanted

    @property
    def so_far(self) -> str:
        """Numbers of points that have come and of all, in a sentence."""
        return tr("As far as it got: {count} of {wanted} places.").format(count=self.count, wanted=self.wanted)

    def final(self, measure: str, row: int = 0) -> Spread:
        """A measure after the last update at every place."""
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
        """The place at which theory says that the runs arrive. See :func:`theory.optimum`."""
        if row not in self._optimum:
            self._optimum[row] = theory.optimum(self.sweep, row)
        return self._optimum[row]

    def has_optimum(self) -> bool:
        """Whether theory has a point anywhere on the axis."""
        return any(len(self.optimum(row)["place"]) for row in range(len(self.sweep.rows)))


def row_line(row: int) -> str:
    """Name of the line of a row, which is one value of the second setting."""
    return f"row {row}"


def spread_of(values: np.ndarray, measure: str) -> Spread:
    """The spread over the seeds, which are the last axis of ``values``."""
    median, low, high = band(values)
    middle = {"kl": median, "reward": values.mean(axis=-1)}[measure]
    return Spread(middle, low, high)


def titled(measure: str) -> str:
    """A measure with what of its seeds is drawn, for an axis or a column."""
    return tr("{titles}, {centre}").format(titles=TITLES[measure], centre=CENTRES[measure])


def course(runs: Ensemble, measure: str) -> Spread:
    """A measure over training, update 0 first, (U + 1,)."""
    return spread_of(runs.counted(measure), measure)


def middle_seed(runs: Ensemble, measure: str = "kl") -> int:
    """The place of the seed whose last value is the (lower) median of all."""
    order = np.argsort(runs.counted(measure)[-1], kind="stable")
    return int(order[(len(order) - 1) // 2])
