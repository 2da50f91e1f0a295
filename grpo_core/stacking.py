"""Updates of the same shape, stacked along a leading axis S so that one call computes their numbers.

A stacked update is a :class:`Step` whose arrays of completions are (S, B), (S, B, T), and (N + 1, S, B, T) for arrays
with one entry per pass; groups, micro-batches and settings are common to all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from grpo_core.record import ARRAYS, Step

EACH = ("tokens", "mask", "rewards", "step_rewards", "old_logp", "ref_logp", "values", "context", "ref_dist_logp")
"""Fields that differ between updates, stacked along axis 0."""
OF_PASSES = ("logp", "dist_logp")
"""Fields with one entry per pass, stacked along axis 1, after the passes."""
SHARED = ("group", "part")
UNREAD = ("row_id", "reward_parts")
"""Fields that no computation reads. Those of the first update are kept."""
ABSENT = tuple(name for name in ARRAYS if name not in (*EACH, *OF_PASSES, *SHARED, *UNREAD))
"""Fields that must be absent for an update to be stacked: a language model's prompts, and those that only trainers
record.
"""


def neighbours(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Split ``steps`` into consecutive lists that can be stacked."""
    together: list[Step] = []
    for step in steps:
        stackable = _stackable(step)
        if together and not (stackable and _alike(together[0], step)):
            yield together
            together = []
        together.append(step)
        if not stackable:
            yield together
            together = []
    if together:
        yield together


def stacked(steps: Sequence[Step]) -> Step:
    """Stack updates of one shape (see :func:`neighbours`) along a leading axis."""
    arrays: dict[str, Any] = {}
    for name in EACH:
        if getattr(steps[0], name) is not None:
            arrays[name] = np.array([getattr(step, name) for step in steps])
    for name in OF_PASSES:
        if getattr(steps[0], name) is not None:
            own = [getattr(step, name) for step in steps]
            arrays[name] = np.array([[x[passed] for x in own] for passed in range(len(own[0]))])
    return dataclasses.replace(steps[0], **arrays)


def _stackable(step: Step) -> bool:
    """Return whether the update has no padding, log-probabilities for every pass, and no optional fields."""
    return (
        all(getattr(step, name) is None for name in ABSENT)
        and step.scored_after
        and (step.dist_logp is None or len(step.dist_logp) == step.passes + 1)
        and not step.part.any()
        and bool(step.mask.all())
        and not np.isnan(step.rewards).any()
    )


def _alike(one: Step, other: Step) -> bool:
    """Return whether two stackable updates have the same settings and shapes."""
    if one.settings is not other.settings and one.settings != other.settings:
        return False
    same = all(_shape(getattr(one, name)) == _shape(getattr(other, name)) for name in (*EACH, *OF_PASSES))
    return same and all(
        getattr(one, name) is getattr(other, name) or np.array_equal(getattr(one, name), getattr(other, name))
        for name in SHARED
    )


def _shape(x: np.ndarray | None) -> tuple[int, ...] | None:
    return None if x is None else x.shape
