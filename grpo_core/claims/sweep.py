"""Claims about a sweep: highest and lowest reward, the KL, smooth training, runs that are still climbing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from grpo_core.claims.claim import Claim, agree, agrees
from grpo_core.claims.comparison import CLIMBING, NAMED, Lead, Trained, climbed
from grpo_core.claims.numbers import written
from grpo_core.claims.paired import FEWEST, Difference, changed, compared, counted
from grpo_core.text import enumeration, listed, plural, tr


@dataclass(frozen=True, kw_only=True, eq=False)
class Swept(Trained):
    """Raw arrays of a sweep: all points in the order of the grid, and the row of the grid that is described.

    Attributes:
        kl: name -> (U + 1, S), KL from the start in nats, for the points of that row; not finite if a seed diverged.
    """

    kl: Mapping[str, np.ndarray]

    @property
    def row(self) -> Trained:
        """The arrays of the row's points only."""
        return Trained(courses={name: self.courses[name] for name in self.kl}, stuck=self.stuck, floor=self.floor)

    def last_kl(self, name: str) -> np.ndarray:
        """Return the last KL of each seed, (S,). Infinite for diverged seeds."""
        return counted(self.kl[name][-1], np.inf)

    def falls(self, name: str) -> np.ndarray:
        """Return the total decrease of each seed's reward, summed over its updates, (S,)."""
        return falls(counted(self.courses[name], self.floor))


@dataclass(frozen=True, kw_only=True)
class Highest(Lead):
    """Claims a lead, with the mean that the leader reaches."""

    best: float

    def check(self, data: Trained) -> bool:
        return super().check(data) and agrees(self.best, data.ranked()[0][1])

    def words(self) -> str:
        text = tr("Mean reward is highest at {leader} ({best}), by {by} [{low}, {high}] over {other}")
        return self.filled(text, **self.texts("best", "by", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class Lowest(Claim[Trained]):
    """Claims that the first of ``names`` has the lowest mean, ``least``, and that the others are statistically level
    with it.

    ``diverged`` of its ``of`` seeds diverged and count as the lowest possible value.
    """

    names: tuple[str, ...]
    least: float
    diverged: int
    of: int

    def check(self, data: Trained) -> bool:
        names, least = lowest(data)
        lost = data.diverged(names[0])
        return (self.names, self.diverged, self.of) == (names, int(lost.sum()), len(lost)) and agrees(self.least, least)

    def words(self) -> str:
        (value,) = written(self.least)
        if self.diverged:
            value = self.filled(tr("{least}; {diverged} of {of} diverged"), least=value)
        if len(self.names) > NAMED:
            return plural(
                "lowest at {first} ({value}), level with {count} other",
                "lowest at {first} ({value}), level with {count} others",
                len(self.names) - 1,
            ).format(first=self.names[0], value=value, count=len(self.names) - 1)
        return tr("lowest at {names} ({value})").format(names=enumeration(self.names), value=value)


@dataclass(frozen=True, kw_only=True)
class Moves(Claim[Swept]):
    """Claims the median KL at the first and the last point of the row, and the interval of their paired difference.

    ``least`` and ``most`` are the lowest and the highest median of the whole row, whose ends alone say little.
    ``seeds`` is the number of seeds.
    """

    first: float
    last: float
    low: float
    high: float
    least: float
    most: float
    seeds: int

    def check(self, data: Swept) -> bool:
        first, last, here = moved(data)
        middle = [median(data.last_kl(name)) for name in data.kl]
        found = (first, last, here.low, here.high, min(middle), max(middle))
        own = (self.first, self.last, self.low, self.high, self.least, self.most)
        seeds = len(data.last_kl(next(iter(data.kl))))
        return self.seeds == seeds and agree(own, found)

    def words(self) -> str:
        numbers = self.texts("first", "last", "least", "most")
        if not agree((self.least, self.most), sorted((self.first, self.last))):
            return tr(
                "The median KL is {first} nats at the left end and {last} at the right; over the row it lies between "
                "{least} and {most}"
            ).format(**numbers)
        if self.seeds < FEWEST and self.low < 0 < self.high:
            return plural(
                "From left to right the median KL goes from {first} to {last} nats; fewer than {fewest} seed cannot "
                "show whether it changes",
                "From left to right the median KL goes from {first} to {last} nats; fewer than {fewest} seeds cannot "
                "show whether it changes",
                FEWEST,
            ).format(**numbers, fewest=FEWEST)
        if not (self.low or self.high) and agrees(self.first, self.last):
            return tr("From left to right the median KL stays at {first} nats").format(**numbers)
        if self.low <= 0 <= self.high:
            return tr(
                "From left to right the median KL goes from {first} to {last} nats, too close to tell if it changes"
            ).format(**numbers)
        if self.high < 0:
            return tr("From left to right the median KL falls from {first} to {last} nats").format(**numbers)
        return tr("From left to right the median KL rises from {first} to {last} nats").format(**numbers)


@dataclass(frozen=True, kw_only=True)
class Between(Claim[Swept]):
    """Claims the lowest and the highest median KL of a row whose values have no order."""

    least: float
    most: float

    def check(self, data: Swept) -> bool:
        middle = [median(data.last_kl(name)) for name in data.kl]
        return agrees(self.least, min(middle)) and agrees(self.most, max(middle))

    def words(self) -> str:
        least, most = written(self.least, self.most)
        return tr("The median KL lies between {first} and {last} nats").format(first=least, last=most)


@dataclass(frozen=True, kw_only=True)
class Smoothest(Claim[Swept]):
    """Claims that in the row the reward of ``best`` falls least in total, by ``least``, and that of ``worst`` most."""

    best: str
    worst: str
    least: float
    most: float
    low: float
    high: float

    def check(self, data: Swept) -> bool:
        found = smoothest(data)
        if found is None:
            return False
        best, worst, least, most, here = found
        same = agree((self.least, self.most, self.low, self.high), (least, most, here.low, here.high))
        return same and (self.best, self.worst) == (best, worst)

    def words(self) -> str:
        text = tr(
            "The smoothest is {best} (all falls of the reward together: {least}), the roughest {worst} ({most}: "
            "[{low}, {high}] more)"
        )
        return self.filled(text, **self.texts("least", "most", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class StillClimbing(Claim[Swept]):
    """Claims that of the ``all`` points of the row, ``names`` are still rising after ``updates`` updates."""

    names: tuple[str, ...]
    all: int
    updates: int

    def check(self, data: Swept) -> bool:
        updates = {len(data.courses[name]) - 1 for name in data.kl}
        return (self.names, self.all, {self.updates}) == (climbing(data), len(data.kl), updates) and bool(self.names)

    def words(self) -> str:
        if len(self.names) > NAMED:
            return plural(
                "Still climbing after {updates:,} update: {count} of {all} places",
                "Still climbing after {updates:,} updates: {count} of {all} places",
                self.updates,
            ).format(updates=self.updates, count=len(self.names), all=self.all)
        return plural(
            "Still climbing after {updates:,} update: {places}",
            "Still climbing after {updates:,} updates: {places}",
            self.updates,
        ).format(updates=self.updates, places=listed(self.names))


def falls(courses: np.ndarray) -> np.ndarray:
    """Return the total decrease over each column of ``courses`` (U + 1, S), (S,)."""
    return np.asarray(-np.minimum(np.diff(courses, axis=0), 0.0).sum(axis=0))


def median(values: np.ndarray) -> float:
    """Return the median of ``values`` (S,). Infinite if half of them are."""
    return float(np.median(values))


def lowest(data: Trained) -> tuple[tuple[str, ...], float]:
    """Return the names of the point with the lowest mean and of those statistically level with it, and that mean."""
    ranked = data.ranked()
    worst, least = ranked[-1]
    others = {name: -data.last(name) for name in data.courses if name != worst}
    found = compared(-data.last(worst), others)
    return (worst, *(name for name, _ in ranked[::-1] if name != worst and found[name].level)), least


def moved(data: Swept) -> tuple[float, float, Difference]:
    """Return the median KL at both ends of the row, and the difference of the last from the first within each seed."""
    first, last = (data.last_kl([*data.kl][end]) for end in (0, -1))
    return median(first), median(last), changed({"last": (last, first)}, median=True)["last"]


def smoothest(data: Swept) -> tuple[str, str, float, float, Difference] | None:
    """Return the points of the row whose reward falls least and most, the two decreases, and their difference.

    None if another point is statistically level with the best one.
    """
    lost = {name: data.falls(name) for name in data.kl}
    mean = {name: float(values.mean()) for name, values in lost.items()}
    best, worst = min(mean, key=lambda name: mean[name]), max(mean, key=lambda name: mean[name])
    others = {name: values for name, values in lost.items() if name != best}
    found = compared(-lost[best], {name: -values for name, values in others.items()})
    if not found or any(here.level for here in found.values()):
        return None
    return best, worst, mean[best], mean[worst], found[worst]


def climbing(data: Swept) -> tuple[str, ...]:
    """Return the points of the row whose mean rose significantly by more than :data:`CLIMBING`."""
    found = climbed(data.row)
    return tuple(name for name in data.kl if found[name].low > 0 and found[name].by > CLIMBING)
