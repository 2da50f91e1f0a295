"""Claims about a race, or any settings trained with the same seeds: which of them lead, are level, or fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from grpo_core.claims.claim import Claim, Derived, same
from grpo_core.claims.numbers import MINUS, written
from grpo_core.claims.paired import FEWEST, Difference, changed, compared, counted, differences
from grpo_core.text import enumeration, plural, tr

NAMED = 3
"""Maximum number of names listed in a sentence. If there are more, only their number is given."""
FINISH = 0.9
"""Position of the finish line, as a share of the way from the start to the lowest last mean of those that rise."""
LAST, CLIMBING = 0.1, 0.01
"""Criterion for still climbing: the mean rises by more than ``CLIMBING`` over the last ``LAST`` of the updates.

``LAST`` is a share.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """The raw arrays of several runs with the same seeds.

    Attributes:
        courses: name -> (U + 1, S), a quantity for which more is better; not finite if a seed has diverged.
        stuck: name -> (S,) boolean, whether a seed's most likely action at the end is not the best.
        floor: the minimum of the quantity, used for diverged seeds.
    """

    courses: Mapping[str, np.ndarray]
    stuck: Mapping[str, np.ndarray]
    floor: float

    @property
    def equal_updates(self) -> bool:
        """Whether all runs have the same number of updates, so that they can be compared update by update."""
        return len({len(course) for course in self.courses.values()}) == 1

    def course(self, name: str) -> np.ndarray:
        """Return the mean over the seeds after each update, (U + 1,), with diverged seeds at the floor."""
        return np.asarray(counted(self.courses[name], self.floor).mean(axis=-1))

    def last(self, name: str) -> np.ndarray:
        """Return the last value of each seed, (S,), with diverged seeds at the floor."""
        return counted(self.courses[name][-1], self.floor)

    def ranked(self) -> list[tuple[str, float]]:
        """Return the names and means of the last values, best first. Ties keep their order."""
        return sorted(((name, float(self.last(name).mean())) for name in self.courses), key=lambda one: -one[1])

    @cached_property
    def behind(self) -> dict[str, Difference]:
        """The differences between the last values of the run with the highest mean and those of each other run."""
        (leader, _), *_ = self.ranked()
        return compared(self.last(leader), {name: self.last(name) for name in self.courses if name != leader})

    def in_front(self) -> tuple[str, ...]:
        """Return the leader and those statistically level with it, best first."""
        (leader, _), *others = self.ranked()
        return (leader, *(name for name, _ in others if self.behind[name].level))

    def diverged(self, name: str) -> np.ndarray:
        """Return the seeds that have diverged, (S,) boolean."""
        return np.asarray(~np.isfinite(self.courses[name][-1]))

    def arrivals(self, name: str, line: float) -> np.ndarray:
        """Return the first update after which each seed is above ``line``, (S,), or infinity."""
        past = counted(self.courses[name], self.floor) > line
        return np.where(past.any(axis=0), past.argmax(axis=0), np.inf)


@dataclass(frozen=True, kw_only=True)
class Lead(Derived[Trained]):
    """Claims that ``leader`` ends ahead of all others, and of ``other``, the second, ``by`` on average.

    The interval is ``low`` to ``high``.
    """

    leader: str
    other: str
    by: float
    low: float
    high: float

    @classmethod
    def found_in(cls, data: Trained) -> Self | None:
        (leader, _), (other, _), *_ = data.ranked()
        if len(data.in_front()) > 1:
            return None
        return cls(leader=leader, other=other, **data.behind[other].numbers)

    def words(self) -> str:
        return self.filled(tr("{leader} leads {other} by {by} [{low}, {high}]"), **self.texts("by", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class Level(Derived[Trained]):
    """Claims that the seeds do not show which of ``names`` is ahead, but show that ``behind`` other runs are behind.

    The first has the highest mean, ``best``, and leads the second by ``by`` with the interval ``low`` to ``high``. The
    lowest mean of ``names`` is ``least``. ``few``: whether there are fewer than :data:`FEWEST` seeds, and runs that
    differ.
    """

    names: tuple[str, ...]
    behind: int
    best: float
    least: float
    by: float
    low: float
    high: float
    few: bool

    @classmethod
    def found_in(cls, data: Trained) -> Self | None:
        means, names = dict(data.ranked()), data.in_front()
        if len(names) < 2:
            return None
        return cls(
            names=names,
            behind=len(means) - len(names),
            best=means[names[0]],
            least=min(means[name] for name in names),
            **data.behind[names[1]].numbers,
            few=any(data.behind[name].few for name in names[1:]),
        )

    def words(self) -> str:
        (least,), (most,) = written(self.least), written(self.best)
        numbers = self.texts("by", "low", "high", "best")
        if self.few:
            return plural(
                "Fewer than {fewest} seed is too few to tell who leads; highest is {first}, at {best}",
                "Fewer than {fewest} seeds are too few to tell who leads; highest is {first}, at {best}",
                FEWEST,
            ).format(fewest=FEWEST, first=self.names[0], best=numbers["best"])
        if len(self.names) > NAMED:
            pattern = tr("{count} of {all} end level at {most}, {first} highest")
            if least != most:
                pattern = tr("{count} of {all} end at {least} to {most}, too close to tell; {first} is highest")
            return pattern.format(
                count=len(self.names), all=len(self.names) + self.behind, least=least, most=most, first=self.names[0]
            )
        if len(self.names) > 2 and least != most:
            text = tr("{names} end at {least} to {most}, too close to tell")
            return text.format(names=enumeration(self.names), least=least, most=most)
        if len(self.names) > 2 or not (self.low or self.by or self.high):
            return tr("{names} end level at {best}").format(names=enumeration(self.names), best=most)
        text = tr("{names} end level at {best}, {by} [{low}, {high}] apart")
        return text.format(names=enumeration(self.names), **numbers)


@dataclass(frozen=True, kw_only=True)
class Failed(Derived[Trained]):
    """Claims that ``stuck`` of the seeds of ``names`` are stuck on a suboptimal action, and ``diverged`` have diverged.

    ``names`` are the leader and those statistically level with it. Each has a run for every seed, and runs are counted.
    """

    names: tuple[str, ...]
    stuck: int
    diverged: int
    of: int

    @classmethod
    def found_in(cls, data: Trained) -> Self:
        lost = {name: data.diverged(name) for name in data.in_front()}
        return cls(
            names=tuple(lost),
            stuck=sum(int((data.stuck[name] & ~own).sum()) for name, own in lost.items()),
            diverged=sum(int(own.sum()) for own in lost.values()),
            of=sum(map(len, lost.values())),
        )

    def words(self) -> str:
        pattern = plural("{stuck} of {of} seed stuck", "{stuck} of {of} seeds stuck", self.of)
        if len(self.names) > 1:  # each of them trained every seed
            pattern = plural("{stuck} of their {of} run stuck", "{stuck} of their {of} runs stuck", self.of)
        told = self.filled(pattern)
        return self.filled(tr("{stuck}, {diverged} diverged"), stuck=told) if self.diverged else told


@dataclass(frozen=True, kw_only=True)
class Since(Derived[Trained]):
    """Claims that the mean of ``leader`` is the highest from update ``update`` onwards, but not before."""

    leader: str
    update: int

    @classmethod
    def found_in(cls, data: Trained) -> Self | None:
        (leader, _), *_ = data.ranked()
        since = led_since(data, leader) if data.equal_updates else None
        return None if since is None else cls(leader=leader, update=since)

    def words(self) -> str:
        return self.filled(tr("it is ahead from update {update} on"))


@dataclass(frozen=True, kw_only=True)
class Sooner(Derived[Trained]):
    """Claims that the first of ``names`` passes ``line`` after ``updates`` updates (median of the seeds).

    No other run is earlier. It is ``by`` updates sooner than the second, with the interval ``low`` to ``high``. If the
    interval contains 0, the seeds do not show which is first. Never passing the line counts as infinitely late.
    ``few``: whether the reason is that there are fewer than :data:`FEWEST` seeds.

    The line is :data:`FINISH` of the way up to the lowest last mean of those that have risen, and the second run that
    of the lowest lower limit. There is no claim if there is only one run, none has risen, the numbers of updates
    differ, no run's median seed passes the line, or the seeds show that the second run is earlier within each seed.
    """

    names: tuple[str, ...]
    line: float
    updates: float
    by: float
    low: float
    high: float
    few: bool

    @classmethod
    def found_in(cls, data: Trained) -> Self | None:
        courses = [data.course(name) for name in data.courses]
        risen = [course for course in courses if course[-1] - course[0] > CLIMBING]
        if len(courses) < 2 or not data.equal_updates or not risen:
            return None
        lowest = min(risen, key=lambda course: float(course[-1]))
        line = float(lowest[0] + FINISH * (lowest[-1] - lowest[0]))
        arrivals = {name: data.arrivals(name, line) for name in data.courses}
        middle = {name: float(np.quantile(arrived, 0.5, method="lower")) for name, arrived in arrivals.items()}
        first, *rest = sorted(data.courses, key=lambda name: middle[name])
        if not np.isfinite(middle[first]):
            return None
        found = compared(-arrivals[first], {name: -arrivals[name] for name in rest}, median=True)
        second = min(rest, key=lambda name: found[name].low)
        lead = found[second]
        if lead.high < 0:
            return None
        return cls(names=(first, second), line=line, updates=middle[first], **lead.numbers, few=lead.few)

    def words(self) -> str:
        pattern = plural(
            "{first} is past {line} after {updates} update, {by} [{low}, {high}] earlier than {second}",
            "{first} is past {line} after {updates} updates, {by} [{low}, {high}] earlier than {second}",
            int(self.updates),
        )
        if self.few:
            pattern = plural(
                "Too few seeds to tell; {first} is past {line} after {updates} update",
                "Too few seeds to tell; {first} is past {line} after {updates} updates",
                int(self.updates),
            )
        elif self.low <= 0:
            pattern = plural(
                "Too close to tell: {first} is past {line} after {updates} update, "
                "{by} [{low}, {high}] earlier than {second}",
                "Too close to tell: {first} is past {line} after {updates} updates, "
                "{by} [{low}, {high}] earlier than {second}",
                int(self.updates),
            )
        numbers = {name: whole(getattr(self, name)) for name in ("updates", "by", "low", "high")}
        return pattern.format(first=self.names[0], second=self.names[1], **numbers, **self.texts("line"))


@dataclass(frozen=True, kw_only=True)
class Climbs(Claim[Trained]):
    """Claims that the mean of ``name`` rose by ``by`` [``low``, ``high``] over the last tenth of its updates."""

    name: str
    by: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the rise exceeds the threshold and is statistically significant."""
        return self.low > 0 and self.by > CLIMBING

    def check(self, data: Trained) -> bool:
        here = climbed(data)[self.name]
        return self.holds and same((self.by, self.low, self.high), tuple(here.numbers.values()))

    def words(self) -> str:
        return self.filled(tr("{name} still climbs (by {by} in the last tenth)"), **self.texts("by"))


def led_since(data: Trained, leader: str) -> int | None:
    """Return the first update after which ``leader`` is always ahead by more than rounding. None if not at the end."""
    others = np.max([data.course(name) for name in data.courses if name != leader], axis=0)
    behind = np.flatnonzero(differences(data.course(leader), others) <= 0)
    since = int(behind[-1]) + 1 if len(behind) else 0
    return since if since < len(others) else None


def climbed(data: Trained) -> dict[str, Difference]:
    """Return the rise of each run over the last tenth of the updates, as differences over the seeds."""
    pairs = {}
    for name, course in data.courses.items():
        before = course[-1 - max(round(LAST * (len(course) - 1)), 1)]
        pairs[name] = data.last(name), counted(before, data.floor)
    return changed(pairs)


def whole(value: float) -> str:
    """Return a number of updates, which can be infinite."""
    return f"{value:.0f}".replace("-", MINUS).replace("inf", "∞")
