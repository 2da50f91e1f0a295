"""Batches drawn by Hypothesis: groups, lengths, masks, ratios and rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

Array = np.ndarray
EPSILONS = (0.0, 3e-4, 0.1, 0.2, 0.28, 0.4)
AWAY = (0.0, 0.01, 0.3, 1.0)
"""Sizes of the drawn log-ratios: from unchanged, or as after a step, to far beyond any clip range."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """One batch as seen by a loss, in double precision.

    Attributes:
        groups, size: number of prompts, and of completions of each.
        logp, old, ref: log-probabilities, (B, T).
        mask: tokens that count, boolean (B, T). Completions can be fully masked, but not all are.
        rewards: (P, G).
        advantage: (B,), unrelated to the rewards.
        entropy: (B, T).
    """

    groups: int
    size: int
    logp: Array
    old: Array
    ref: Array
    mask: Array
    rewards: Array
    advantage: Array
    entropy: Array

    @property
    def leaf(self) -> torch.Tensor:
        """Return log π as a tensor that requires a gradient."""
        return torch.tensor(self.logp, requires_grad=True)

    def tensors(self, *names: str) -> tuple[Any, ...]:
        """Return the fields as tensors, with numbers for the mask."""
        found = (np.asarray(getattr(self, name)) for name in names)
        return tuple(torch.tensor(x.astype(float) if x.dtype == bool else x) for x in found)

    @property
    def index(self) -> Array:
        """Return the index of each completion's prompt, (B,)."""
        return np.repeat(np.arange(self.groups), self.size)


@st.composite
def batches(draw: Any, *, far: float = 1.0, smallest: int = 1, unscored: bool = False) -> Batch:
    """Draw a batch.

    Args:
        draw: Hypothesis's function.
        far: factor of the log-ratios.
        smallest: minimum number of completions in a group.
        unscored: whether rewards can be NaN.
    """
    groups, size, tokens = draw(st.integers(1, 3)), draw(st.integers(smallest, 8)), draw(st.integers(1, 9))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = groups * size
    away = far * draw(st.sampled_from(AWAY))
    logp = -numbers.exponential(1.5, (rows, tokens))
    mask = np.arange(tokens) < numbers.integers(1, tokens + 1, (rows, 1))
    if draw(st.booleans()):  # tools, or prompts of a conversation, within a completion
        mask &= numbers.random(mask.shape) < 0.7
    if draw(st.booleans()):
        mask[numbers.integers(rows)] = False
    if not mask.any():
        mask[0, 0] = True
    kind = draw(st.sampled_from(("right or wrong", "equal", "any", "far")))
    rewards = {
        "right or wrong": numbers.integers(0, 2, (groups, size)).astype(float),
        "equal": np.repeat(numbers.choice([0.1, 1 / 3, 0.7, 0.0], (groups, 1)), size, axis=1),
        "any": numbers.normal(size=(groups, size)),
        "far": 1e3 * numbers.normal(size=(groups, size)),
    }[kind]
    if unscored and draw(st.booleans()):
        rewards[numbers.random(rewards.shape) < 0.3] = np.nan
    advantage = numbers.normal(size=rows) * draw(st.sampled_from((0.0, 1.0, 3.0)))
    return Batch(
        groups=groups,
        size=size,
        logp=logp,
        mask=mask,
        rewards=rewards,
        advantage=advantage,
        old=logp + away * numbers.normal(size=logp.shape),
        ref=logp + 0.5 * numbers.normal(size=logp.shape),
        entropy=numbers.exponential(1.0, logp.shape),
    )


def apart(ours: Any, theirs: Any, least: float = 0.0) -> float:
    """Return the largest difference, relative to the largest number in either, and to at least ``least`` or 1e-3."""
    one, other = (np.asarray(x.detach() if isinstance(x, torch.Tensor) else x, float) for x in (ours, theirs))
    size = max(float(np.abs(one).max(initial=0)), float(np.abs(other).max(initial=0)), least, 1e-3)
    return float(np.abs(one - other).max(initial=0)) / size
