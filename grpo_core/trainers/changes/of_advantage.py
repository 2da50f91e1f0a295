"""Possible deviations in a trainer's advantages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.record import Step
from grpo_core.trainers.changes.change import Change, Factor, Parameters, fitted, replaced, switched, under
from grpo_core.trainers.changes.numbers import Update

EPSILONS = ((1e-6,), (1e-3,), (1e-2,), (0.1,), (0.5,), (1.0,), (3.0,))
"""Starting points for fitting the constant added to the standard deviation."""


ORDERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "reversed": lambda rows, groups: rows[::-1],
    "even places before odd ones": lambda rows, groups: np.concatenate([rows[::2], rows[1::2]]),
    "first and second half in turn": lambda rows, groups: rows[np.argsort(np.argsort(rows % 2, kind="stable"))],
    "by place in the group before the group": lambda rows, groups: rows.reshape(groups, -1).T.ravel(),
    "by group before the place in the group": lambda rows, groups: rows.reshape(-1, groups).T.ravel(),
}
"""Wrong orders of completions: function from the rows 0 to B - 1 and the number of groups to the rows taken, (B,)."""
COMPARED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the reward of the group's first completion": lambda table: table[:, 0],
    "the lowest reward of the group": lambda table: np.nanmin(table, axis=1),
    "the highest reward of the group": lambda table: np.nanmax(table, axis=1),
    "the median reward of the group": lambda table: np.nanmedian(table, axis=1),
    "the mean of the group before": lambda table: np.roll(np.nanmean(table, axis=1), 1),
    "the mean of the group after": lambda table: np.roll(np.nanmean(table, axis=1), -1),
}
"""Other baselines: function from the rewards of each group, (P, G), to one baseline for each, (P,)."""


def orders(step: Step) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each wrong order of the completions that is possible, with the places taken, (B,)."""
    rows, groups = np.arange(len(step.group)), int(step.group.max(initial=0)) + 1
    yield "one place to the right", np.roll(rows, 1)
    yield "one place to the left", np.roll(rows, -1)
    for name, order in ORDERS.items():
        if len(rows) % groups == 0 and not np.array_equal(order(rows, groups), rows):
            yield name, order(rows, groups)


def reordered(step: Step, part: str) -> Iterator[Change]:
    """Yield changes that give the advantages to completions in each wrong order."""
    for detail, _ in orders(step):
        yield Change(name="advantage_rows", part=part, detail=detail, apply=partial(_ordered, detail=detail))


def limited(part: str) -> Iterator[Change]:
    """Yield changes that clip the advantages, on both sides or at 0."""
    starts = ((0.3,), (0.6,), (1.0,), (1.5,), (3.0,))
    yield Change(name="advantage_limit", part=part, apply=_limited, starts=starts, low=1e-6)
    yield replaced(
        "advantage_positive", part, advantage=lambda update, step, n: np.maximum(recompute.advantage(step), 0.0)
    )


def of_advantage(step: Step) -> Iterator[Change]:
    """Yield all changes of an advantage that can be tried for this kind of update."""
    o = step.settings.objective
    if step.reward_parts is not None and step.reward_parts.shape[1] > 1:
        yield Change(name="reward_weights", part="rewards", apply=_unweighted)
        names = step.settings.recorded.reward_names
        for k in range(step.reward_parts.shape[1]):
            yield Change(
                name="reward_missing",
                part="rewards",
                detail=names[k] if k < len(names) else str(k + 1),
                apply=partial(_without, missing=k),
            )
    for std in DEVIATIONS:
        if std != o.std:
            yield switched(f"std:{std}", "std", std=std)
    for baseline, compared_with in BASELINES.items():
        if baseline != o.baseline and not compared_with.from_critic:
            yield switched(f"baseline:{baseline}", "baseline", baseline=baseline)
    if DEVIATIONS[o.std].divides:
        yield fitted("std_epsilon", "epsilon", ("std_epsilon",), EPSILONS)
    groups = int(step.group.max(initial=0)) + 1
    if groups > 1 and len(step.group) % groups == 0 and groups * _generated(step) > len(step.group):
        for detail in ("both", "spread", "compared"):
            yield Change(name="group_order", part="group", detail=detail, apply=partial(_interleaved, detail=detail))
    for name in COMPARED:
        yield Change(name="baseline_other", part="baseline", detail=name, apply=partial(_compared, name=name))
    yield Change(name="advantage_twice", part="twice", apply=_twice)
    yield from reordered(step, "rows")
    yield Change(name="advantage_stale", part="rows", apply=_stale)
    yield from limited("limit")


def _interleaved(update: Update, step: Step, n: int, p: Parameters, *, detail: str) -> Step:
    """Assign completions to groups in turn, 0 1 0 1, instead of consecutively, 0 0 1 1.

    ``detail`` says where this wrong order is used: for comparing completions ("compared"), for assigning the results to
    them ("spread"), or for both ("both").
    """
    turns = _turns(step)
    if detail == "both":
        return dataclasses.replace(step, group=turns)
    compared = dataclasses.replace(step, group=turns) if detail == "compared" else step
    given = turns if detail == "spread" else step.group
    lines = _lines(compared)
    return dataclasses.replace(step, advantage=lines[given, 0] * step.rewards + lines[given, 1])


def _turns(step: Step) -> np.ndarray:
    """Return the group of each completion, (B,), for groups that alternate within each generation batch."""
    places, size = np.arange(len(step.group)), _generated(step)
    groups = (int(step.group.max()) + 1) * size // len(step.group)
    return np.asarray(places % size % groups + places // size * groups)


def _generated(step: Step) -> int:
    """Return the number of completions of a generation batch, or of the update if unknown."""
    size = step.settings.recorded.trainer_values.get("generation_batch_size")
    return int(size) if isinstance(size, int) and size > 0 and len(step.group) % size == 0 else len(step.group)


def _lines(step: Step) -> np.ndarray:
    """Return the advantage as a linear function of the reward in each group, (P, 2): slope and intercept.

    NaN for a group without rewards.
    """
    advantage, lines = recompute.advantage(step), np.full((int(step.group.max()) + 1, 2), np.nan)
    o = step.settings.objective
    steepest = 1.0 / o.std_epsilon if DEVIATIONS[o.std].divides and o.std_epsilon else 1.0
    for group in range(len(lines)):
        own = np.flatnonzero((step.group == group) & ~np.isnan(step.rewards))
        if len(own):
            low, high = (int(own[f(step.rewards[own])]) for f in (np.argmin, np.argmax))
            apart = step.rewards[high] - step.rewards[low]
            slope = (advantage[high] - advantage[low]) / apart if apart > 0 else steepest
            lines[group] = slope, advantage[low] - slope * step.rewards[low]
    return lines


def _compared(update: Update, step: Step, n: int, p: Parameters, *, name: str) -> Step:
    """Subtract another baseline from the rewards, which are divided as before."""
    slopes = _lines(step)[step.group, 0]
    compared = COMPARED[name](recompute.grouped(step, step.rewards))
    return dataclasses.replace(step, advantage=slopes * (step.rewards - compared[step.group]))


def _twice(update: Update, step: Step, n: int, p: Parameters) -> Step:
    again = under(step, baseline="batch_mean", std="batch")
    return dataclasses.replace(again, rewards=recompute.advantage(step))


def _ordered(update: Update, step: Step, n: int, p: Parameters, *, detail: str) -> Step | None:
    order = dict(orders(step)).get(detail)
    return None if order is None else dataclasses.replace(step, advantage=recompute.advantage(step)[order])


def _stale(update: Update, step: Step, n: int, p: Parameters) -> Step | None:
    if update.previous is None or len(update.previous.rewards) != len(step.rewards):
        return step if update.previous is None else None  # the first update has no predecessor
    return dataclasses.replace(
        step, advantage=recompute.advantage(dataclasses.replace(update.previous, advantage=None))
    )


def _limited(update: Update, step: Step, n: int, p: Parameters) -> Step:
    return dataclasses.replace(step, advantage=np.clip(recompute.advantage(step), -p[0], p[0]))


def _unweighted(update: Update, step: Step, n: int, p: Parameters) -> Step:
    assert step.reward_parts is not None
    return dataclasses.replace(step, rewards=np.nansum(step.reward_parts, axis=1))


def _without(update: Update, step: Step, n: int, p: Parameters, *, missing: int) -> Step:
    assert step.reward_parts is not None
    weights = step.settings.recorded.reward_weights or (1.0,) * step.reward_parts.shape[1]
    others = [k for k in range(len(weights)) if k != missing]
    return dataclasses.replace(step, rewards=np.nansum((step.reward_parts * weights)[:, others], axis=1))


FACTORS = (Factor(name="advantage_factor", columns=(0,)),)
"""Factors by which parts of an advantage can be wrong."""
