"""Claims about a sweep: highest and lowest reward, the KL, smooth training, runs that are still climbing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from grpo_core.claims.claim import Derived, agrees, same
from grpo_core.claims.comparison import CLIMBING, NAMED, Lead, Trained, climbed
from grpo_core.claims.numbers import written
from grpo_core.claims.paired import FEWEST, changed, compared, counted
from grpo_core.text import enumeration, listed, plural, tr


@dataclass(frozen=True, kw_only=True, eq=False)
class Swept(Trained):
    """Raw arrays of a sweep: all points in the order of the grid, and the row of the grid that is described.

    Attributes:
        kl: name -> (U + 1, S), KL from the start in nats, for the points of that row; not finite if a seed diverged.
    """

    kl: Mapping[str, np.ndarray]

    def last_kl(self, name: str) -> np.ndarray:
        """Return the last KL of each seed, (S,). Infinite for diverged seeds."""
        return counted(self.kl[name][-1], np.inf)

    @property
    def middle_kl(self) -> list[float]:
        """The median of the last KL of each point of the row. Infinite if half of a point's seeds are."""
        return [float(np.median(self.last_kl(name))) for name in self.kl]

    def falls(self, name: str) -> np.ndarray:
        """Return the total decrease of each seed's reward, summed over its updates, (S,)."""
        return falls(counted(self.courses[name], self.floor))


@dataclass(frozen=True, kw_only=True)
class Highest(Lead):
    """Claims a lead, with the mean that the leader reaches."""

    best: float

    @classmethod
    def found_in(cls, data: Trained) -> Self | None:
        lead = Lead.found_in(data)
        return None if lead is None else cls(**vars(lead), best=data.ranked()[0][1])

    def words(self) -> str:
        text = tr("Mean reward is highest at {leader} ({best}), by {by} [{low}, {high}] over {other}")
        return self.filled(text, **self.texts("best", "by", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class Lowest(Derived[Trained]):
    """Claims that the first of ``names`` has the lowest mean, ``least``, and that the others are statistically level
    with it.

    ``diverged`` of its ``of`` seeds diverged and count as the lowest possible value.
    """

    names: tuple[str, ...]
    least: float
    diverged: int
    of: int

    @classmethod
    def found_in(cls, data: Trained) -> Self:
        (worst, least), *others = data.ranked()[::-1]
        found = compared(-data.last(worst), {name: -data.last(name) for name in data.courses if name != worst})
        lost = data.diverged(worst)
        names = (worst, *(name for name, _ in others if found[name].level))
        return cls(names=names, least=least, diverged=int(lost.sum()), of=len(lost))

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
class Moves(Derived[Swept]):
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

    @classmethod
    def found_in(cls, data: Swept) -> Self:
        first, last = (data.last_kl([*data.kl][end]) for end in (0, -1))
        change, middle = changed({"": (last, first)}, median=True)[""], data.middle_kl
        return cls(
            first=middle[0],
            last=middle[-1],
            low=change.low,
            high=change.high,
            least=min(middle),
            most=max(middle),
            seeds=len(first),
        )

    def words(self) -> str:
        numbers = self.texts("first", "last", "least", "most")
        if not same((self.least, self.most), tuple(sorted((self.first, self.last)))):
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
class Between(Derived[Swept]):
    """Claims the lowest and the highest median KL of a row whose values have no order."""

    least: float
    most: float

    @classmethod
    def found_in(cls, data: Swept) -> Self:
        return cls(least=min(data.middle_kl), most=max(data.middle_kl))

    def words(self) -> str:
        least, most = written(self.least, self.most)
        return tr("The median KL lies between {first} and {last} nats").format(first=least, last=most)


@dataclass(frozen=True, kw_only=True)
class Smoothest(Derived[Swept]):
    """Claims that in the row the reward of ``best`` falls least in total, by ``least``, and that of ``worst`` most.

    There is no claim if another point is statistically level with the best one.
    """

    best: str
    worst: str
    least: float
    most: float
    low: float
    high: float

    @classmethod
    def found_in(cls, data: Swept) -> Self | None:
        lost = {name: data.falls(name) for name in data.kl}
        mean = {name: float(values.mean()) for name, values in lost.items()}
        best, worst = min(mean, key=lambda name: mean[name]), max(mean, key=lambda name: mean[name])
        found = compared(-lost[best], {name: -values for name, values in lost.items() if name != best})
        if not found or any(here.level for here in found.values()):
            return None
        low, high = found[worst].low, found[worst].high
        return cls(best=best, worst=worst, least=mean[best], most=mean[worst], low=low, high=high)

    def words(self) -> str:
        text = tr(
            "The smoothest is {best} (all falls of the reward together: {least}), the roughest {worst} ({most}: "
            "[{low}, {high}] more)"
        )
        return self.filled(text, **self.texts("least", "most", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class StillClimbing(Derived[Swept]):
    """Claims that of the ``all`` points of the row, ``names`` are still rising after ``updates`` updates.

    Their means have risen significantly by more than :data:`CLIMBING`.
    """

    names: tuple[str, ...]
    all: int
    updates: int

    @classmethod
    def found_in(cls, data: Swept) -> Self | None:
        row = Trained(courses={name: data.courses[name] for name in data.kl}, stuck=data.stuck, floor=data.floor)
        names = tuple(name for name, rise in climbed(row).items() if rise.low > 0 and rise.by > CLIMBING)
        updates = {len(course) - 1 for course in row.courses.values()}
        return cls(names=names, all=len(data.kl), updates=updates.pop()) if names and len(updates) == 1 else None

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
