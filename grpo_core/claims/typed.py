"""Claims about a completion typed by the user, and its advantage in the group that it joins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.claims.captions import apart
from grpo_core.claims.claim import Kind, Tabled, agrees
from grpo_core.text import listed, tr

RARE = -23
"""Log-probability below which a completion is sampled less than once in ten billion draws."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Joined:
    """A typed completion scored by the model.

    Attributes:
        logp: (T,), log-probabilities of its tokens.
        own: (T,) boolean, the tokens that the model writes; a tool writes the others.
        reward, parts: its reward, and the parts before weighting, (K,).
        rewards, advantages: (G + 1,), of the group that it joins as the last member; NaN if unscored.
    """

    logp: np.ndarray
    own: np.ndarray
    reward: float
    parts: np.ndarray
    names: tuple[str, ...]
    weights: tuple[float, ...]
    rewards: np.ndarray
    advantages: np.ndarray

    @property
    def total(self) -> float:
        """Log-probability of all that the model writes of the completion."""
        return math.fsum(float(x) for x in self.logp[self.own])


def _pushed(data: Joined, v: Any, sign: int) -> bool:
    last = float(data.advantages[-1])
    return agrees(v.advantage, last) and (last > 0) - (last < 0) == sign


def _is_paid(data: Joined, v: Any) -> bool:
    """Return whether the claimed reward is correct, and the claimed parts are exactly those with a non-zero weight."""
    every = zip(data.names, data.parts, data.weights, strict=True)
    found = tuple((name, float(part), float(weight)) for name, part, weight in every if weight)
    return agrees(v.reward, data.reward) and v.parts == found


def _is_written(data: Joined, v: Any, *, rare: bool) -> bool:
    return agrees(v.total, data.total) and (data.total < RARE) == rare


def _all_equal(data: Joined, v: Any) -> bool:
    paid = [float(reward) for reward in data.rewards if math.isfinite(reward)]
    return len(paid) > 0 and min(paid) == max(paid)


TYPED: dict[str, Kind[Joined]] = {
    "up": Kind(
        text=tr("Your completion would get advantage +{advantage}: it would be pushed up."),
        holds=lambda data, v: _pushed(data, v, 1),
    ),
    "down": Kind(
        text=tr("Your completion would get advantage {advantage}: it would be pushed down."),
        holds=lambda data, v: _pushed(data, v, -1),
    ),
    "neither": Kind(
        text=tr("Your completion would get advantage {advantage}: it would be neither pushed up nor down."),
        holds=lambda data, v: _pushed(data, v, 0),
    ),
    "paid": Kind(text=tr("Reward {reward} ({parts})."), holds=_is_paid),
    "odds": Kind(
        text=tr("The model writes it 1 time in {times} (log π {total})."),
        holds=lambda data, v: _is_written(data, v, rare=False),
    ),
    "rare": Kind(
        text=tr("The model writes it less than 1 time in ten billion (log π {total})."),
        holds=lambda data, v: _is_written(data, v, rare=True),
    ),
    "all_equal": Kind(text=tr("All rewards of the group would be equal."), holds=_all_equal),
}
"""The kinds of claims in this module, by name."""


class Typed(Tabled[Joined]):
    """A claim about a typed completion."""

    KINDS = TYPED

    def words(self) -> str:
        facts = dict(self.values)
        for name in ("advantage", "reward", "total"):
            if name in facts:
                facts[name] = apart(facts[name])[0]
        if self.kind == "odds":
            times = math.exp(-dict(self.values)["total"])
            facts["times"] = f"{times:,.0f}" if times >= 10 else f"{times:.2g}"
        if "parts" in facts:
            parts = (f"{part:g} × {name}" + (f" × {by:g}" if by != 1 else "") for name, part, by in facts["parts"])
            facts["parts"] = listed(parts) or tr("no part of it pays")
        return self.KINDS[self.kind].template(facts).format(**facts)
