"""Claims about repeats of a run: when a probability first exceeds one half, the final actions, the final reward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from grpo_core.claims.claim import Derived
from grpo_core.claims.numbers import written
from grpo_core.claims.paired import changed, counted
from grpo_core.text import listed, plural, tr

HALF = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Repeated:
    """The raw arrays of S repeats over n updates.

    Attributes:
        max_prob: (n, S), the largest probability after each update, averaged over the visited positions.
        reward: (n, S), the mean reward of each update's batch; not finite if a repeat diverged.
        likeliest: (S, C), the most likely action for each prompt after the last update.
        rewards: (C, A), reward of each action; None if rewards are not defined per action.
        own: the first update after which this probability exceeded one half in the original run; None if there is none
            or it is unknown.
        best_prob: (n, S), the probability of the best action after each update, averaged over the prompts; None if
            rewards are not defined per action.
    """

    max_prob: np.ndarray
    reward: np.ndarray
    likeliest: np.ndarray
    rewards: np.ndarray | None
    own: int | None = None
    best_prob: np.ndarray | None = None

    @property
    def passed(self) -> np.ndarray:
        """The first update, from 1, after which the largest probability exceeds one half, (S,), or infinity."""
        above = self.max_prob > HALF
        return np.where(above.any(axis=0), above.argmax(axis=0) + 1.0, np.inf)

    @property
    def last(self) -> np.ndarray:
        """The last mean reward of each repeat, (S,). A diverged repeat counts as the lowest reward of an action."""
        return counted(self.reward[-1], -np.inf if self.rewards is None else float(self.rewards.min()))


@dataclass(frozen=True, kw_only=True, eq=False)
class Batches:
    """Batches of repeats of a task with a reward per action, which differ in their settings.

    Attributes:
        repeated: the batches by the words that tell them apart; empty words for a single batch.
        actions: names of the actions, (A,).
    """

    repeated: Mapping[str, Repeated]
    actions: tuple[str, ...]

    @property
    def updates(self) -> int:
        """The last update that all batches have."""
        return min(len(one.max_prob) for one in self.repeated.values())

    @property
    def action(self) -> str:
        """Name of the best action, or an empty string if several prompts have different ones."""
        tables = [one.rewards for one in self.repeated.values() if one.rewards is not None]
        best = {int(place) for rewards in tables for place in rewards.argmax(axis=-1)}
        return self.actions[best.pop()] if len(best) == 1 else ""


@dataclass(frozen=True, kw_only=True)
class Reached(Derived[Batches]):
    """Claims the mean probability of the best action after ``updates`` updates in each of the batches ``names``.

    Also claims the 95 % interval of each mean, from ``lows`` to ``highs``. A diverged repeat counts as 0. There is no
    claim if the task has no reward per action.
    """

    action: str
    updates: int
    names: tuple[str, ...]
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @classmethod
    def found_in(cls, data: Batches) -> Self | None:
        last = [one.best_prob[data.updates - 1] for one in data.repeated.values() if one.best_prob is not None]
        found = [changed({"": (counted(values, 0.0), np.zeros(len(values)))})[""] for values in last]
        if not found:
            return None
        means, lows, highs = zip(*((one.by, one.low, one.high) for one in found), strict=True)
        names = tuple(data.repeated)
        return cls(action=data.action, updates=data.updates, names=names, means=means, lows=lows, highs=highs)

    def words(self) -> str:
        numbers = written(*self.means, *self.lows, *self.highs)
        each = [numbers[place :: len(self.names)] for place in range(len(self.names))]
        told = [
            tr("{name} {mean} ({low} to {high})").format(name=name, mean=mean, low=low, high=high).strip()
            for name, (mean, low, high) in zip(self.names, each, strict=True)
        ]
        of = tr("π({action})").format(action=self.action) if self.action else tr("The best action’s probability")
        return plural(
            "{of} after {updates:,} update, mean and 95% interval: {values}",
            "{of} after {updates:,} updates, mean and 95% interval: {values}",
            self.updates,
        ).format(of=of, updates=self.updates, values=listed(told))


@dataclass(frozen=True, kw_only=True)
class Passed(Derived[Repeated]):
    """Claims that ``there`` of ``count`` repeats pass π = 0.5 for some action within ``updates`` updates.

    Also claims the first, the (lower) median and the last of these updates.
    """

    count: int
    there: int
    updates: int
    first: float
    middle: float
    last: float

    @classmethod
    def found_in(cls, data: Repeated) -> Self:
        past = np.sort(data.passed)
        there = int(np.isfinite(past).sum())
        first, middle, last = (float(past[place]) for place in (0, max(there - 1, 0) // 2, max(there - 1, 0)))
        count, updates = len(past), len(data.max_prob)
        return cls(count=count, there=there, updates=updates, first=first, middle=middle, last=last)

    def words(self) -> str:
        if not self.there:
            return plural(
                "None of {count} repeat passes π = 0.5 within {updates:,} updates",
                "None of {count} repeats passes π = 0.5 within {updates:,} updates",
                self.count,
            ).format(count=self.count, updates=self.updates)
        facts = vars(self) | {name: int(getattr(self, name)) for name in ("first", "middle", "last")}
        if self.there < self.count:
            return plural(
                "{there} of {count} repeat passes π = 0.5 within {updates:,} updates: median of these {middle}, range "
                "{first} to {last}",
                "{there} of {count} repeats pass π = 0.5 within {updates:,} updates: median of these {middle}, range "
                "{first} to {last}",
                self.count,
            ).format(**facts)
        return plural(
            "The one repeat passes π = 0.5: median update {middle}, range {first} to {last}",
            "All {count} repeats pass π = 0.5: median update {middle}, range {first} to {last}",
            self.count,
        ).format(**facts)


@dataclass(frozen=True, kw_only=True)
class Later(Derived[Repeated]):
    """Claims that the run passed π = 0.5 after update ``own``, later than ``before`` of ``of`` repeats.

    There is no claim if neither is known to pass it.
    """

    own: int
    before: int
    of: int

    @classmethod
    def found_in(cls, data: Repeated) -> Self | None:
        past, own = data.passed, data.own
        if own is None or not np.isfinite(past).any():
            return None
        return cls(own=own, before=int((past < own).sum()), of=len(past))

    def words(self) -> str:
        if not self.before:
            return self.filled(tr("This run passed it at update {own}; no repeat was earlier"))
        return self.filled(tr("This run passed it at update {own}, later than {before} of them"))


@dataclass(frozen=True, kw_only=True)
class OnWrong(Derived[Repeated]):
    """Claims that after ``updates`` updates, ``wrong`` of ``of`` repeats prefer a suboptimal action for a prompt.

    There is no claim if rewards are not defined per action.
    """

    wrong: int
    of: int
    updates: int

    @classmethod
    def found_in(cls, data: Repeated) -> Self | None:
        if data.rewards is None:
            return None
        best = data.rewards >= data.rewards.max(axis=-1, keepdims=True)
        missed = (~np.take_along_axis(best, data.likeliest.T, axis=-1)).any(axis=0)
        return cls(wrong=int(missed.sum()), of=len(data.likeliest), updates=len(data.max_prob))

    def words(self) -> str:
        return self.filled(tr("{wrong} of {of} end on an action other than the best"))


@dataclass(frozen=True, kw_only=True)
class LastReward(Derived[Repeated]):
    """Claims the median, mean and range of the last mean reward, and that ``diverged`` of ``of`` repeats diverged."""

    updates: int
    median: float
    mean: float
    low: float
    high: float
    diverged: int
    of: int

    @classmethod
    def found_in(cls, data: Repeated) -> Self:
        last = data.last
        return cls(
            updates=len(data.reward),
            median=float(np.median(last)),
            mean=float(last.mean()),
            low=float(last.min()),
            high=float(last.max()),
            diverged=int((~np.isfinite(data.reward[-1])).sum()),
            of=len(last),
        )

    def words(self) -> str:
        numbers = self.texts("median", "mean", "low", "high")
        text = tr("Mean reward at update {updates:,}: median {middle}, mean {mean}, range {low} to {high}")
        told = self.filled(text, middle=numbers["median"], **numbers)
        if not self.diverged:
            return told
        return self.filled(tr("{told}; {diverged} of {of} diverged and count as the lowest"), told=told)
