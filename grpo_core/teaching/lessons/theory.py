"""Theoretical values with which lessons compare their counts."""

from __future__ import annotations

import math

import numpy as np

SURE = 50.0
"""Difference of logits at which one action is always chosen: the probability of the other is below 1e-21."""


def dead_share(chance: float, group_size: int) -> float:
    """Return the probability that the G answers of a group are all correct or all wrong: p^G + (1 − p)^G.

    Args:
        chance: probability p of a correct answer, 0 to 1; the answers of a group are independent.
        group_size: G, at least 1.
    """
    return chance**group_size + (1 - chance) ** group_size


def bias_of(chance: float) -> float:
    """Return the logit that gives one of two actions the probability ``chance``: log p / (1 − p), limited to ±50."""
    if not 0 < chance < 1:
        return SURE if chance >= 1 else -SURE
    return min(max(math.log(chance / (1 - chance)), -SURE), SURE)


def pass_at(chances: np.ndarray, k: int) -> float:
    """Return pass@k: the mean share of prompts for which at least one of k independent completions is correct.

    It is 1 − (1 − p)^k (after Chen et al. 2021, arXiv:2107.03374, where p is estimated from samples).

    Args:
        chances: (P,) probability of a correct completion for each prompt.
        k: number of completions of a prompt.
    """
    return float(np.mean(-np.expm1(k * np.log1p(-np.minimum(chances, 1 - 1e-16)))))
