"""The name of a group of equal rewards: one function for the cards of an update and the findings of a run."""

from __future__ import annotations

from typing import Literal

NEAR = 1e-6
"""How far from the highest or lowest reward a reward may be by rounding, relative to these."""

Sort = Literal["right", "wrong", "same"]


def sort_of(reward: float, low: float = 0.0, high: float = 1.0) -> Sort:
    """The name of a group's one reward, where ``low`` and ``high`` are the ends of what is paid.

    Where a whole run has one reward, nothing is known of the ends: then more than nothing is taken for right.
    """
    near = NEAR * max(abs(low), abs(high), 1e-12)
    if high - low <= near:
        return "right" if reward > 0 else "wrong"
    return "right" if reward >= high - near else "wrong" if reward <= low + near else "same"
