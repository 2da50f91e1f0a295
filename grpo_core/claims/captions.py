"""Claims in a film's captions: the rewards of some draws, and the probabilities that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.claims.arrays import ALIKE, equal, paid, within
from grpo_core.claims.claim import Claim, Kind, Tabled, agrees, same
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
    def rewards(self) -> np.ndarray:
        """The reward of each draw's completion, (n,). NaN if it was not scored."""
        return np.asarray(self.step.rewards[self.rows])

    @property
    def advantages(self) -> np.ndarray:
        """The known advantages of the draws, (m,)."""
        every = recompute.advantage(self.step)
        gained = every[self.rows] if every.ndim == 1 or self.tokens is None else every[self.rows, self.tokens]
        return np.asarray(gained[np.isfinite(gained)])


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


def apart(*values: float) -> tuple[str, ...]:
    """Format numbers as in :func:`written`, but with an exponent if nine decimals cannot tell them apart or from 0."""
    firsts = [next(first for first in values if math.isclose(first, value, rel_tol=ALIKE)) for value in values]
    texts = written(*firsts)
    alike = len({float(text.replace(MINUS, "-")) for text in texts} | {0.0}) < len({*firsts, 0.0})
    return tuple(f"{value:.2e}".replace("-", MINUS) if value else "0" for value in firsts) if alike else texts


def _equal(data: Drawn) -> bool:
    """Return whether rewards are compared within groups, and those compared with the draws' are known and equal."""
    step, rows = data.step, np.unique(data.rows)
    if not within(step) or len(rows) < 2 or not equal(step.rewards[rows]):
        return False
    return all(equal(paid(step, group)) for group in np.unique(step.group[rows]))


def _drew(data: Drawn, v: Any, *, earlier: bool) -> bool:
    """Return whether ``v.met`` of ``v.actions`` actions occur in ``v.count`` draws, and an earlier policy drew them."""
    policy = data.step.distribution(0)
    if policy is None or data.tokens is None or drawn_by_earlier(data.step) != earlier:
        return False
    met = len(set(data.step.tokens[data.rows, data.tokens].tolist()))
    return (v.count, v.met, v.actions) == (len(data.rows), met, policy.shape[-1])


def _ranges(data: Drawn, v: Any) -> bool:
    found = data.advantages
    return len(found) > 0 and v.low < v.high and same((v.low, v.high), (found.min(), found.max()))


def _is_silent(data: Drawn, *, alike: bool) -> bool:
    return len(data.advantages) > 0 and not data.advantages.any() and alike == _equal(data)


CAPTIONS: dict[str, Kind[Drawn]] = {
    "sampled": Kind(
        text=lambda v: plural(
            "Sample: {count} draw from the bars; different actions: {met} of {actions}.",
            "Sample: {count} draws from the bars; different actions: {met} of {actions}.",
            v.count,
        ),
        holds=partial(_drew, earlier=False),
    ),
    "sampled_earlier": Kind(
        text=lambda v: plural(
            "Sample: {count} draw from an earlier policy, not from these bars; different actions: {met} of {actions}.",
            "Sample: {count} draws from an earlier policy, not from these bars; different actions: {met} of {actions}.",
            v.count,
        ),
        holds=partial(_drew, earlier=True),
    ),
    "unscored": Kind(
        text=tr("Score: none of the draws was scored."), holds=lambda data, v: not np.isfinite(data.rewards).any()
    ),
    "scored": Kind(
        text=tr("Score: every draw gets its reward; their mean is {mean}."),
        holds=lambda data, v: agrees(v.mean, float(np.mean(data.rewards))),
    ),
    "scored_some": Kind(
        text=lambda v: plural(
            "Score: {scored} of {count} draw gets a reward; the mean is {mean}.",
            "Score: {scored} of {count} draws get a reward; the mean is {mean}.",
            v.count,
        ),
        holds=lambda data, v: (
            (known := data.rewards[np.isfinite(data.rewards)]).size
            and same((v.scored, v.count, v.mean), (len(known), len(data.rows), float(known.mean())))
        ),
    ),
    "ranged": Kind(text=tr("Normalize: rewards become advantages, from {low} to {high}."), holds=_ranges),
    "ranged_sum": Kind(
        text=tr("Normalize: rewards become advantages, from {low} to {high}; their sum is {total}."),
        holds=lambda data, v: _ranges(data, v) and agrees(v.total, float(data.advantages.sum())),
    ),
    "all_alike": Kind(
        text=tr("Normalize: every advantage here is {low}."),
        holds=lambda data, v: (
            len(data.advantages) > 0 and v.low != 0 and all(agrees(v.low, float(one)) for one in data.advantages)
        ),
    ),
    "silent_alike": Kind(
        text=tr("Normalize: all rewards are equal, so every advantage is 0 and the rewards push nothing."),
        holds=lambda data, v: _is_silent(data, alike=True),
    ),
    "silent": Kind(
        text=tr("Normalize: every advantage here is 0, so the rewards push nothing here."),
        holds=lambda data, v: _is_silent(data, alike=False),
    ),
}
"""The kinds of claims about draws with a fixed wording, by name."""


class Caption(Tabled[Drawn]):
    """A claim about the draws of an update."""

    KINDS = CAPTIONS

    def words(self) -> str:
        values = dict(self.values)
        numbers = {name: value for name, value in values.items() if isinstance(value, float)}
        texts = dict(zip(numbers, apart(*numbers.values()), strict=True))
        return self.KINDS[self.kind].template(values).format(**values | texts)


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


def most_moved(change: np.ndarray) -> tuple[int, ...]:
    """Return at most three entries that rise most, by at least :data:`MOVED`, in descending order."""
    order: Sequence[int] = np.argsort(-change, kind="stable")[:3].tolist()
    return tuple(n for n in order if change[n] >= MOVED)
