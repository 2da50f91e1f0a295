"""Which groups carry no signal, and why; rewards that differ only between prompts, or hardly at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain.quantity import Quantity
from grpo_core.reasons.reason import LONGEST_CHIP, Facts, Reason
from grpo_core.text import tr
from grpo_core.typeset import plain

BARE_SPREAD = 1e-6
"""A spread of rewards below this, relative to max(1, |r|), is more likely a rounding error than a judgement."""
WIDE = 0.1
"""An advantage above this from such a spread has been blown up."""
WRONG, ALONE = tr("all wrong"), "G = 1"
"""What a group with equal rewards is called."""


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
    if np.any(advantages):
        sentence = f"{_alike(scored)} {_although_equal(facts)}"
    else:
        effect = tr("Every advantage is 0, so the group does not push.")
        more = [tr("The KL term still pulls on its tokens.")] if pulled else []
        sentence = " ".join([_why(facts, scored), effect, *more, _remedy(facts, scored)])
    return Reason(
        key=f"group:{group}", chip=_what(scored), sentence=sentence,
        kind="note" if np.any(advantages) else "zero",
        quantities=(Quantity("dead_group", group=group), *(Quantity("advantage", row=int(i)) for i in rows[:3])),
    )  # fmt: skip


def _what(scored: np.ndarray) -> str:
    if len(scored) == 0:
        return tr("not scored")
    if len(scored) == 1:
        return ALONE
    paid = float(scored[0])
    return {0.0: WRONG, 1.0: tr("all right")}.get(paid, tr("all {reward}").format(reward=plain(paid)))


def _within(facts: Facts) -> bool:
    """Whether a group is compared with itself alone."""
    return BASELINES[facts.objective.baseline].within_group or facts.step.advantage is not None


def _why(facts: Facts, scored: np.ndarray) -> str:
    if len(scored) == 0:
        return tr("No completion of this group was scored.")
    if not _within(facts):
        return f"{_alike(scored)} {BASELINES[facts.objective.baseline].equal_rest}"
    if len(scored) == 1:
        return tr("A group of one is compared with itself alone.")
    return tr("All {count} rewards of this group are {scored}: nothing stands out from the mean.").format(
        count=len(scored), scored=plain(float(scored[0]))
    )


def _alike(scored: np.ndarray) -> str:
    """What a group's rewards are, where they are equal and it pushes nevertheless."""
    if len(scored) == 0:
        return tr("No completion of this group was scored.")
    if len(scored) == 1:
        return tr("The one scored completion of this group was paid {reward}.").format(reward=plain(float(scored[0])))
    return tr("All {count} rewards of this group are {scored}.").format(
        count=len(scored), scored=plain(float(scored[0]))
    )


def _although_equal(facts: Facts) -> str:
    """Why equal rewards have advantages that are not 0."""
    if facts.step.advantage is not None:
        return tr("The advantages are those that the source of the record gave; they are not 0.")
    if facts.numbers.penalised and BASELINES[facts.objective.baseline].within_group and not facts.numbers.by_step:
        return tr(
            "The advantages are not 0: what is compared is the reward less β times the completion's KL from the "
            "reference, and that differs from completion to completion."
        )
    return BASELINES[facts.objective.baseline].equal_push


def _remedy(facts: Facts, scored: np.ndarray) -> str:
    if len(scored) == 1 and _within(facts):
        return tr("A group size of 2 or more, or a baseline that is not the group's, gives it a signal.")
    if len(scored) == 0:
        return tr("Two scored completions would give it a signal.")
    if scored.max() <= 0:
        return tr("An easier prompt, a larger group or a higher temperature makes a success more likely.")
    return tr("A harder prompt, a larger group or a higher temperature makes a difference more likely.")


def _narrow(facts: Facts, group: int, scored: np.ndarray) -> Iterator[Reason]:
    """Rewards that differ, but by less than δ, or by so little that dividing by their std blows them up."""
    o, rows = facts.objective, np.flatnonzero(facts.step.group == group)
    if (
        facts.step.advantage is not None
        or DEVIATIONS[o.std].of_batch
        or not DEVIATIONS[o.std].divides
        or facts.numbers.penalised
    ):
        return
    spread = float(scored.max() - scored.min())
    std = float(np.std(scored, ddof=DEVIATIONS[o.std].ddof))
    largest = float(np.abs(facts.row_advantage[rows]).max())
    at = (Quantity("group_std", group=group), Quantity("advantage", row=int(rows[0])))
    if spread <= BARE_SPREAD * max(1.0, float(np.abs(scored).max())) and largest > WIDE:
        yield Reason(
            key=f"group:{group}",
            chip=tr("tiny spread blown up"),
            kind="unhealthy",
            quantities=at,
            sentence=tr(
                "The rewards differ by only {spread}, yet dividing by their standard deviation makes "
                "advantages of up to {largest} of it. A larger δ, or no division, keeps rounding from becoming a "
                "push."
            ).format(spread=plain(spread), largest=plain(largest)),
        )
    elif std < o.std_epsilon:
        yield Reason(
            key=f"group:{group}",
            chip=tr("std below δ"),
            kind="note",
            quantities=at,
            sentence=tr(
                "The standard deviation {std} is below δ = {std_epsilon}, which damps the "
                "advantages to at most {largest}. A smaller δ lets small differences count."
            ).format(std=plain(std), std_epsilon=plain(o.std_epsilon), largest=plain(largest)),
        )


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
    said = (
        tr("{count} of {total} groups hold equal rewards").format(count=count, total=total)
        if total > 1
        else tr("All rewards are equal")
    )
    if set(counted) == {ALONE} and _within(facts):
        said = tr("Groups of one completion have nothing to be compared with")
    elif facts.objective.baseline == "none" and facts.step.advantage is None and not facts.numbers.advantage.any():
        said = tr("No completion was paid anything")
    if np.any(facts.numbers.advantage[np.isin(facts.step.group, dead)]):
        return Reason(
            key="dead_groups", chip=chip, kind="note", quantities=at, sentence=f"{said}. {_although_equal(facts)}"
        )  # fmt: skip
    effect = (
        tr("nothing is learned from rewards in this update") if count == total else tr("they add nothing to the push")
    )
    sentence = tr("{said}, so every advantage there is 0 and {effect}. ").format(said=said, effect=effect)
    if np.any(facts.pull(facts.passed)[np.isin(facts.step.group, dead)]):
        sentence += tr("The KL term still pulls on them. ")
    wrong = count == total and set(counted) == {WRONG}
    sentence += _remedy(facts, facts.rewards[dead[0]][~np.isnan(facts.rewards[dead[0]])])
    kind = "unhealthy" if wrong or set(counted) == {ALONE} else "note"
    return Reason(key="dead_groups", chip=chip, sentence=sentence.strip(), kind=kind, quantities=at)


def _counted(counted: dict[str, int], count: int, total: int) -> str:
    text = ", ".join(f"{sort} {number}" for sort, number in counted.items())
    return text if len(text) <= LONGEST_CHIP else tr("{count} of {total} dead").format(count=count, total=total)


def reward_std(facts: Facts) -> Reason | None:
    """The card: a spread of 0 within groups, whatever the spread between them."""
    scored = facts.step.rewards[~np.isnan(facts.step.rewards)]
    if facts.objective.credit == "process":  # a spread of whole rewards says nothing about the steps
        return None
    if not facts.dead.all() or not len(scored) or (~np.isnan(facts.rewards)).sum(axis=-1).max() < 2:
        return None
    at = tuple(Quantity("reward_std", group=g) for g in range(min(len(facts.dead), 8)))
    if not facts.silent:
        return Reason(
            key="reward_std", chip=tr("equal, yet they push"), kind="note", quantities=at,
            sentence=tr("Within each group the rewards are equal. {why}").format(why=_although_equal(facts)),
        )  # fmt: skip
    if scored.max() - scored.min() > BARE_SPREAD * max(1.0, float(np.abs(scored).max())):
        return Reason(
            key="reward_std",
            chip=tr("differs only by prompt"),
            kind="zero",
            quantities=at,
            sentence=tr(
                "Rewards run from {min} to {max}, but only "
                "between prompts: within each group they are equal, and only differences within a group give a signal."
            ).format(min=plain(float(scored.min())), max=plain(float(scored.max()))),
        )
    return Reason(
        key="reward_std",
        chip=tr("all rewards equal"),
        kind="zero",
        quantities=at,
        sentence=tr("Every completion was paid {scored}, so there is no spread to learn from.").format(
            scored=plain(float(scored[0]))
        ),
    )


def reasons(facts: Facts) -> Iterator[Reason | None]:
    """All of them."""
    yield from group_reasons(facts)
    yield dead_groups(facts)
    yield reward_std(facts)
