"""Claims in a film's captions: the rewards of some draws, and the probabilities that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.claims.arrays import ALIKE, equal, paid, within
from grpo_core.claims.claim import Claim, agrees
from grpo_core.claims.numbers import MINUS, written
from grpo_core.premises import drawn_by_earlier
from grpo_core.record import Step
from grpo_core.text import listed, plural, tr

MOVED = 1e-3
"""Minimum change of a probability that is reported as a rise or a fall."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Some draws of an update, as they were recorded.

    Attributes:
        rows: the completion of each draw, (n,).
        tokens: position of the drawn token in its completion, (n,); None for full completions.
        pays: reward of each possible action, (A,); None if rewards are not defined per action.
    """

    step: Step
    rows: np.ndarray
    tokens: np.ndarray | None = None
    pays: np.ndarray | None = None

    @property
    def advantages(self) -> np.ndarray:
        """The known advantages of the draws, (m,)."""
        every = recompute.advantage(self.step)
        gained = every[self.rows] if every.ndim == 1 or self.tokens is None else every[self.rows, self.tokens]
        return np.asarray(gained[np.isfinite(gained)])


@dataclass(frozen=True, kw_only=True)
class Sampled(Claim[Drawn]):
    """Claims that there are ``draws`` draws, in which ``met`` of the ``of`` actions occur.

    ``earlier``: whether an earlier policy drew them, not the one whose probabilities are shown.
    """

    draws: int
    met: int
    of: int
    earlier: bool

    def check(self, data: Drawn) -> bool:
        policy = data.step.distribution(0)
        if policy is None or data.tokens is None:
            return False
        met = len(set(data.step.tokens[data.rows, data.tokens].tolist()))
        if self.earlier != drawn_by_earlier(data.step):
            return False
        return (self.draws, self.met, self.of) == (len(data.rows), met, policy.shape[-1])

    def words(self) -> str:
        pattern = plural(
            "Sample: {count} draw from an earlier policy, not from these bars; different actions: {met} of {actions}.",
            "Sample: {count} draws from an earlier policy, not from these bars; different actions: {met} of {actions}.",
            self.draws,
        )
        if not self.earlier:
            pattern = plural(
                "Sample: {count} draw from the bars; different actions: {met} of {actions}.",
                "Sample: {count} draws from the bars; different actions: {met} of {actions}.",
                self.draws,
            )
        return pattern.format(count=self.draws, met=self.met, actions=self.of)


@dataclass(frozen=True, kw_only=True)
class Scored(Claim[Drawn]):
    """Claims that ``scored`` of ``of`` draws have a reward. ``mean`` is the mean reward, or None if no draw has one."""

    scored: int
    of: int
    mean: float | None

    def check(self, data: Drawn) -> bool:
        known = [float(reward) for reward in data.step.rewards[data.rows] if math.isfinite(reward)]
        if (self.scored, self.of) != (len(known), len(data.rows)) or (self.mean is None) == bool(known):
            return False
        return self.mean is None or agrees(self.mean, math.fsum(known) / len(known))

    def words(self) -> str:
        if self.mean is None:
            return tr("Score: none of the draws was scored.")
        mean = apart(self.mean)[0]
        if self.scored < self.of:
            return plural(
                "Score: {scored} of {count} draw gets a reward; the mean is {mean}.",
                "Score: {scored} of {count} draws get a reward; the mean is {mean}.",
                self.of,
            ).format(scored=self.scored, count=self.of, mean=mean)
        return tr("Score: every draw gets its reward; their mean is {mean}.").format(mean=mean)


@dataclass(frozen=True, kw_only=True)
class Undrawn(Claim[Drawn]):
    """Claims that the only best action, ``best``, was not drawn. ``name`` is its displayed name."""

    best: int
    name: str

    def check(self, data: Drawn) -> bool:
        if data.pays is None or data.tokens is None or not 0 <= self.best < len(data.pays):
            return False
        others = np.delete(data.pays, self.best)
        drawn = data.step.tokens[data.rows, data.tokens].tolist()
        return bool((others < data.pays[self.best]).all()) and self.best not in drawn

    def words(self) -> str:
        return tr("Action {best} pays most, but nobody drew it.").format(best=self.name)

    def in_fewer_words(self) -> str:
        return tr("Nobody drew {best}, which pays most.").format(best=self.name)


@dataclass(frozen=True, kw_only=True)
class Ranged(Claim[Drawn]):
    """Claims that the advantages range from ``low`` to ``high``. ``total``: their sum, if it is mentioned."""

    low: float
    high: float
    total: float | None = None

    def check(self, data: Drawn) -> bool:
        found = data.advantages
        if not len(found) or not (agrees(self.low, found.min()) and agrees(self.high, found.max())):
            return False
        return self.low < self.high and (self.total is None or agrees(self.total, float(found.sum())))

    def words(self) -> str:
        if self.total is None:
            low, high = apart(self.low, self.high)
            return tr("Normalize: rewards become advantages, from {low} to {high}.").format(low=low, high=high)
        low, high, total = apart(self.low, self.high, self.total)
        return tr("Normalize: rewards become advantages, from {low} to {high}; their sum is {total}.").format(
            low=low, high=high, total=total
        )


@dataclass(frozen=True, kw_only=True)
class AllAlike(Claim[Drawn]):
    """Claims that every advantage is ``value``, which is not 0."""

    value: float

    def check(self, data: Drawn) -> bool:
        found = data.advantages
        return len(found) > 0 and self.value != 0 and all(agrees(self.value, float(one)) for one in found)

    def words(self) -> str:
        return tr("Normalize: every advantage here is {low}.").format(low=apart(self.value)[0])


@dataclass(frozen=True, kw_only=True)
class Silent(Claim[Drawn]):
    """Claims that every advantage is 0. ``equal``: because all compared rewards, two or more, are equal."""

    equal: bool

    def check(self, data: Drawn) -> bool:
        found = data.advantages
        return len(found) > 0 and not found.any() and self.equal == _equal(data)

    def words(self) -> str:
        if self.equal:
            return tr("Normalize: all rewards are equal, so every advantage is 0 and the rewards push nothing.")
        return tr("Normalize: every advantage here is 0, so the rewards push nothing here.")


def apart(*values: float) -> tuple[str, ...]:
    """Format numbers as in :func:`written`, but with an exponent if nine decimals cannot tell them apart or from 0."""
    same = [next(first for first in values if math.isclose(first, value, rel_tol=ALIKE)) for value in values]
    texts = written(*same)
    alike = len({float(text.replace(MINUS, "-")) for text in texts} | {0.0}) < len({*same, 0.0})
    return tuple(f"{value:.2e}".replace("-", MINUS) if value else "0" for value in same) if alike else texts


def _equal(data: Drawn) -> bool:
    """Return whether rewards are compared within groups, and those compared with the draws' are known and equal."""
    step, rows = data.step, np.unique(data.rows)
    if not within(step) or len(rows) < 2 or not equal(step.rewards[rows]):
        return False
    return all(equal(paid(step, group)) for group in np.unique(step.group[rows]))


Change = np.ndarray
"""Change of each probability, (A,)."""


@dataclass(frozen=True, kw_only=True)
class Moved(Claim[Change]):
    """Claims that the probabilities of the entries ``up`` rose by at least a thousandth, and those of ``down`` fell.

    ``others``: whether all other entries moved in the opposite direction to the named ones.
    """

    names: tuple[str, ...]
    up: tuple[int, ...]
    down: tuple[int, ...]
    others: bool = False

    def check(self, data: Change) -> bool:
        if (self.up, self.down) != (most_moved(data), most_moved(-data)):
            return False
        rest = np.delete(data, [*self.up, *self.down])
        return self.others == (bool(self.up) != bool(self.down) and bool((rest < 0 if self.up else rest > 0).all()))

    def words(self) -> str:
        """Return the claim as a clause that follows the update number."""
        up, down = (listed(self.names[n] for n in places) for places in (self.up, self.down))
        if up and down:
            return tr("more probability for {up}, less for {down}").format(up=up, down=down)
        if up and self.others:
            return tr("more probability for {up}, a little less for the others").format(up=up)
        if up:
            return tr("more probability for {up}").format(up=up)
        if down and self.others:
            return tr("less probability for {down}, a little more for the others").format(down=down)
        if down:
            return tr("less probability for {down}").format(down=down)
        return tr("no probability moves by a thousandth")


def most_moved(change: np.ndarray, most: int = 3) -> tuple[int, ...]:
    """Return the entries that rise most, by at least :data:`MOVED`, in descending order."""
    order: Sequence[int] = np.argsort(-change, kind="stable")[:most].tolist()
    return tuple(n for n in order if change[n] >= MOVED)
