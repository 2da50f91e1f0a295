"""Which groups carry no signal, and why; rewards that differ only between prompts, or hardly at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grpo_core.explain.quantity import Quantity
from grpo_core.explain.typeset import plain
from grpo_core.reasons.reason import LONGEST_CHIP, Facts, Reason

BARE_SPREAD = 1e-6
"""A spread of rewards below this, relative to max(1, |r|), is more likely a rounding error than a judgement."""
WIDE = 0.1
"""An advantage above this from such a spread has been blown up."""
RELATIVE = ("group_mean", "leave_one_out")
"""Baselines under which equal rewards mean no advantage."""


def group_reasons(facts: Facts) -> Iterator[Reason]:
    """One for each group that is dead, or whose rewards hardly differ."""
    for group, rewards in enumerate(facts.rewards):
        scored = rewards[~np.isnan(rewards)]
        if facts.dead[group]:
            yield _dead(facts, group, scored)
        else:
            yield from _narrow(facts, group, scored)


def _dead(facts: Facts, group: int, scored: np.ndarray) -> Reason:
    rows = np.flatnonzero(facts.step.group == group)
    pulled = bool(np.any(facts.pull(facts.passed)[rows]))
    advantages = facts.numbers.advantage[rows]
    effect = "Every advantage is 0, so the group does not push."
    if np.any(advantages):
        effect = "The advantages are not 0, because the comparison is not made within the group alone."
    elif pulled:
        effect += " The KL term still pulls on its tokens."
    return Reason(
        key=f"group:{group}", chip=_what(scored), sentence=f"{_why(scored)} {effect} {_remedy(scored)}",
        kind="note" if np.any(advantages) else "zero",
        quantities=(Quantity("dead_group", group=group), *(Quantity("advantage", row=int(i)) for i in rows[:3])),
    )  # fmt: skip


def _what(scored: np.ndarray) -> str:
    if len(scored) == 0:
        return "not scored"
    if len(scored) == 1:
        return "G = 1"
    return {0.0: "all wrong", 1.0: "all right"}.get(float(scored[0]), f"all {plain(float(scored[0]))}")


def _why(scored: np.ndarray) -> str:
    if len(scored) == 0:
        return "No completion of this group was scored."
    if len(scored) == 1:
        return "A group of one is compared with itself alone."
    return f"All {len(scored)} rewards of this group are {plain(float(scored[0]))}: nothing stands out from the mean."


def _remedy(scored: np.ndarray) -> str:
    if len(scored) == 1:
        return "A group size of 2 or more, or a baseline that is not the group's, gives it a signal."
    if len(scored) == 0:
        return "Two scored completions would give it a signal."
    if scored.max() <= 0:
        return "An easier prompt, a larger group or a higher temperature makes a success more likely."
    return "A harder prompt, a larger group or a higher temperature makes a difference more likely."


def _narrow(facts: Facts, group: int, scored: np.ndarray) -> Iterator[Reason]:
    """Rewards that differ, but by less than δ, or by so little that dividing by their std blows them up."""
    o, rows = facts.objective, np.flatnonzero(facts.step.group == group)
    if facts.step.advantage is not None or o.std not in ("sample", "population") or facts.numbers.penalised:
        return
    spread = float(scored.max() - scored.min())
    std = float(np.std(scored, ddof=1 if o.std == "sample" else 0))
    largest = float(np.abs(facts.row_advantage[rows]).max())
    at = (Quantity("group_std", group=group), Quantity("advantage", row=int(rows[0])))
    if spread <= BARE_SPREAD * max(1.0, float(np.abs(scored).max())) and largest > WIDE:
        yield Reason(
            key=f"group:{group}", chip="tiny spread blown up", kind="unhealthy", quantities=at,
            sentence=f"The rewards differ by only {plain(spread)}, yet dividing by their standard deviation makes "
            f"advantages of up to {plain(largest)} of it. A larger δ, or no division, keeps rounding from becoming a "
            "push.",
        )  # fmt: skip
    elif std < o.std_epsilon:
        yield Reason(
            key=f"group:{group}", chip="std below δ", kind="note", quantities=at,
            sentence=f"The standard deviation {plain(std)} is below δ = {plain(o.std_epsilon)}, which damps the "
            f"advantages to at most {plain(largest)}. A smaller δ lets small differences count.",
        )  # fmt: skip


def dead_groups(facts: Facts) -> Reason | None:
    """The card: how many groups are dead, and of which sort."""
    dead = np.flatnonzero(facts.dead)
    if not len(dead):
        return None
    sorts = [_what(row[~np.isnan(row)]) for row in facts.rewards[dead]]
    count, total = len(dead), len(facts.dead)
    at = tuple(Quantity("dead_group", group=int(g)) for g in dead[:8])
    counted = {sort: sorts.count(sort) for sort in dict.fromkeys(sorts)}
    chip = next(iter(counted)) if count == total and len(counted) == 1 else _counted(counted, count, total)
    said = f"{count} of {total} groups hold equal rewards" if total > 1 else "All rewards are equal"
    if set(counted) == {"G = 1"}:
        said = "Groups of one completion have nothing to be compared with"
    if np.any(facts.numbers.advantage[np.isin(facts.step.group, dead)]):
        return Reason(
            key="dead_groups", chip=chip, kind="note", quantities=at,
            sentence=f"{said}. With this baseline their advantages are not 0, so they push all the same.",
        )  # fmt: skip
    effect = "nothing is learned from rewards in this update" if count == total else "they add nothing to the push"
    sentence = f"{said}, so every advantage there is 0 and {effect}. "
    if np.any(facts.pull(facts.passed)[np.isin(facts.step.group, dead)]):
        sentence += "The KL term still pulls on them. "
    wrong = count == total and set(counted) == {"all wrong"}
    sentence += _remedy(facts.rewards[dead[0]][~np.isnan(facts.rewards[dead[0]])])
    kind = "unhealthy" if wrong or set(counted) == {"G = 1"} else "note"
    return Reason(key="dead_groups", chip=chip, sentence=sentence.strip(), kind=kind, quantities=at)


def _counted(counted: dict[str, int], count: int, total: int) -> str:
    text = ", ".join(f"{sort} {number}" for sort, number in counted.items())
    return text if len(text) <= LONGEST_CHIP else f"{count} of {total} dead"


def reward_std(facts: Facts) -> Reason | None:
    """The card: a spread of 0 within groups, whatever the spread between them."""
    scored = facts.step.rewards[~np.isnan(facts.step.rewards)]
    if not facts.dead.all() or not len(scored) or (~np.isnan(facts.rewards)).sum(axis=-1).max() < 2:
        return None
    at = tuple(Quantity("reward_std", group=g) for g in range(min(len(facts.dead), 8)))
    if scored.max() - scored.min() > BARE_SPREAD * max(1.0, float(np.abs(scored).max())):
        return Reason(
            key="reward_std", chip="differs only by prompt", kind="zero", quantities=at,
            sentence=f"Rewards run from {plain(float(scored.min()))} to {plain(float(scored.max()))}, but only "
            "between prompts: within each group they are equal, and only differences within a group give a signal.",
        )  # fmt: skip
    return Reason(
        key="reward_std", chip="all rewards equal", kind="zero", quantities=at,
        sentence=f"Every completion was paid {plain(float(scored[0]))}, so there is no spread to learn from.",
    )  # fmt: skip


def reasons(facts: Facts) -> Iterator[Reason | None]:
    """All of them."""
    yield from group_reasons(facts)
    yield dead_groups(facts)
    yield reward_std(facts)
