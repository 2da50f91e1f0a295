"""Claims of the cards about rewards and groups. ``group`` None means all dead groups.

They are checked against the update.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.claims.arrays import dead, entropy_pulls, equal, gained, groups, kl_pulls, paid, rows, silent, within
from grpo_core.claims.claim import Kind, agrees
from grpo_core.deviations import DEVIATIONS
from grpo_core.premises import cut_off, has_difficulty, meaning
from grpo_core.record import Step
from grpo_core.text import plural, tr


def _all_paid(step: Step, v: Any) -> bool:
    values = paid(step, v.group)
    return len(values) == v.count > 0 and equal(values) and agrees(v.reward, float(values[0]))


def _of_steps(step: Step) -> bool:
    """Return whether rewards of steps are compared, which can be equal in completions whose own rewards differ."""
    return step.settings.objective.credits_steps


def _pushes(step: Step, v: Any) -> bool:
    """Return whether an advantage of the group, or of any dead group, is not 0."""
    return bool(gained(step)[rows(step, v.group)].any())


def _compared(step: Step, v: Any) -> list[np.ndarray]:
    return [paid(step, g) for g in _those(step, v)]


def _penalty_differs(step: Step, v: Any) -> bool:
    """Return whether the KL penalty, β times the log-ratio to the reference, varies within a group of equal rewards."""
    o = step.settings.objective
    if not o.kl_in_reward or not o.beta or step.ref_logp is None or step.advantage is not None:
        return False
    k1 = np.where(step.mask, step.old_logp - step.ref_logp, 0.0).sum(axis=-1)
    scored = ~np.isnan(step.rewards)
    those = [k1[(step.group == g) & scored] for g in _those(step, v)]
    return _pushes(step, v) and any(len(own) > 1 and np.ptp(own) > 0 for own in those)


def _penalised(step: Step, v: Any) -> bool:
    """Return whether a KL penalty is subtracted from a reward of the group, or of a dead group."""
    o = step.settings.objective
    if not o.kl_in_reward or not o.beta or step.ref_logp is None or step.advantage is not None:
        return False
    here = slice(None) if o.baseline == "batch_mean" else rows(step, v.group)  # the mean includes the others' too
    return _pushes(step, v) and bool((step.old_logp - step.ref_logp)[here][step.mask[here]].any())


def _by_rounding(step: Step, v: Any) -> bool:
    """Return whether the advantages are not 0 only because the batch mean differs from the rewards by rounding."""
    every = np.concatenate([paid(step, g) for g in groups(step)])
    alike = all(equal(np.append(own, every.mean())) for own in _compared(step, v))
    return step.settings.objective.baseline == "batch_mean" and alike and _pushes(step, v) and step.advantage is None


def _of_other_rewards(step: Step, v: Any, baseline: str) -> bool:
    """Return whether equal rewards have an advantage because they differ from ``baseline``."""
    if step.settings.objective.baseline != baseline or step.advantage is not None or not _pushes(step, v):
        return False
    values = [own for own in _compared(step, v) if len(own)]
    every = np.concatenate([paid(step, g) for g in groups(step)])
    if baseline == "none":
        return any(own.any() for own in values)
    return baseline != "batch_mean" or any(not equal(np.append(own, every.mean())) for own in values)


def _nothing_of_it(step: Step, v: Any, baseline: str) -> bool:
    """Return whether equal rewards have no advantage because they equal ``baseline``."""
    o, values = step.settings.objective, paid(step, v.group)
    if o.baseline != baseline or _pushes(step, v) or not len(values):
        return False
    every = np.concatenate([paid(step, g) for g in groups(step)])
    at = {"batch_mean": every.mean(), "none": 0.0}
    return baseline not in at or agrees(float(values[0]), float(at[baseline]))


def _blown_up(step: Step, v: Any) -> bool:
    values, o = paid(step, v.group), step.settings.objective
    largest = float(np.abs(gained(step)[step.group == v.group]).max())
    spread = float(values.max() - values.min())
    one_by_one = DEVIATIONS[o.std].of_group
    close = abs(v.spread - spread) <= 1e-9 * spread and abs(v.largest - largest) <= 1e-9 * largest
    return one_by_one and close and 0 < spread <= 1e-6 * max(1.0, float(np.abs(values).max()))


def _damped(step: Step, v: Any) -> bool:
    values, o = paid(step, v.group), step.settings.objective
    mean = float(values.sum()) / len(values)
    free = len(values) - DEVIATIONS[o.std].ddof
    std = float(np.sqrt(((values - mean) ** 2).sum() / free)) if free > 0 else 0.0
    largest = float(np.abs(gained(step)[step.group == v.group]).max())
    if BASELINES[o.baseline].from_critic or step.advantage is not None:
        return False
    same = abs(v.std - std) <= 1e-6 * std and agrees(v.delta, o.std_epsilon) and agrees(v.largest, largest)
    return same and std < o.std_epsilon and DEVIATIONS[o.std].of_group


def _counted(step: Step, v: Any, *, unscored: bool) -> bool:
    those = dead(step)
    empty = any(not len(paid(step, g)) for g in those)
    return (v.count, v.total) == (len(those), len(groups(step))) and empty == unscored and len(those) > 0


def _every(step: Step) -> np.ndarray:
    return np.asarray(step.rewards[~np.isnan(step.rewards)])


def _between(step: Step, v: Any) -> bool:
    every = _every(step)
    ends = agrees(v.min, float(every.min())) and agrees(v.max, float(every.max())) and v.min < v.max
    return ends and len(dead(step)) == len(groups(step)) and within(step)


def _no_spread(step: Step, v: Any, *, whole: bool) -> bool:
    every = _every(step)
    alike = len(every) > 0 and float(np.ptp(every)) <= 1e-6 * max(1.0, float(np.abs(every).max()))
    return alike and (len(every) == len(step.rewards)) == whole and agrees(v.reward, float(every[0]))


def _those(step: Step, v: Any) -> list[int]:
    return dead(step) if v.group is None else [v.group]


def _means(step: Step, v: Any, *kinds: str) -> list[bool]:
    """Return whether the equal rewards of the group, or of each dead group, mean one of ``kinds``."""
    paid_there = [(g, paid(step, g)) for g in _those(step, v)]
    return [len(own) > 0 and meaning(step, g, float(own[0])) in kinds for g, own in paid_there]


def _alone(step: Step, group: int, *, whole: bool) -> bool:
    """Return whether one completion of the group is scored. ``whole``: whether the group has no other."""
    return len(paid(step, group)) == 1 and (int((step.group == group).sum()) == 1) == whole and within(step)


def _cut_off(step: Step, v: Any) -> bool:
    cut = int(cut_off(step, stop=v.stop, call_end=v.call_end).sum())
    return (v.count, v.total, v.limit) == (cut, len(step.tokens), step.settings.language.max_tokens)


GROUPS: dict[str, Kind[Step]] = {
    "unscored": Kind(
        text=tr("No completion of this group was scored."), holds=lambda step, v: not len(paid(step, v.group))
    ),
    "all_paid": Kind(
        text=lambda v: plural(
            "The one scored completion of this group was paid {reward}.",
            "All {count} rewards of this group are {reward}.",
            v.count,
        ),
        holds=lambda step, v: _all_paid(step, v) and not _of_steps(step),
    ),
    "all_steps_paid": Kind(
        text=lambda v: plural(
            "The one step of this group was paid {reward}.",
            "All {count} steps of this group's completions were paid {reward}.",
            v.count,
        ),
        holds=lambda step, v: _all_paid(step, v) and _of_steps(step),
    ),
    "no_mark": Kind(
        text=lambda v: plural(
            "The only reward of this group is {reward}: nothing stands out from the mean.",
            "All {count} rewards of this group are {reward}: nothing stands out from the mean.",
            v.count,
        ),
        holds=lambda step, v: _all_paid(step, v) and within(step) and not _of_steps(step),
    ),
    "no_mark_of_steps": Kind(
        text=lambda v: plural(
            "The only step of this group was paid {reward}: nothing stands out from the mean.",
            "All {count} steps of this group's completions were paid {reward}: nothing stands out from the mean.",
            v.count,
        ),
        holds=lambda step, v: _all_paid(step, v) and within(step) and _of_steps(step),
    ),
    "lone": Kind(
        text=tr("A group of one can only be compared with itself."),
        holds=lambda step, v: _alone(step, v.group, whole=True),
    ),
    "lone_scored": Kind(
        text=tr("Only one completion of this group was scored, so its reward can only be compared with itself."),
        holds=lambda step, v: _alone(step, v.group, whole=False),
    ),
    "given": Kind(
        text=tr("The advantages are those that the source of the recording gave; they are not 0."),
        holds=lambda step, v: step.advantage is not None and _pushes(step, v),
    ),
    "penalised": Kind(
        text=tr(
            "The advantages are not 0: what is compared is the reward less β times the completion's KL from the "
            "reference, and that differs from completion to completion."
        ),
        holds=_penalty_differs,
    ),
    **{
        f"push:{name}": Kind(text=b.equal_push, holds=partial(_of_other_rewards, baseline=name))
        for name, b in BASELINES.items()
        if b.equal_push
    },
    **{
        f"rest:{name}": Kind(text=b.equal_rest, holds=partial(_nothing_of_it, baseline=name))
        for name, b in BASELINES.items()
        if b.equal_rest
    },
    "penalised_too": Kind(
        text=tr(
            "The advantages are not 0: β times a completion's KL from the reference is subtracted from its reward."
        ),
        holds=_penalised,
    ),
    "by_rounding": Kind(
        text=tr("The advantages differ from 0 only by rounding: the rewards are the mean of the whole batch."),
        holds=_by_rounding,
    ),
    "no_advantage": Kind(
        text=tr("Every advantage is 0, so its rewards push nothing."), holds=lambda step, v: not _pushes(step, v)
    ),
    "kl_pulls": Kind(
        text=tr("The KL term still pulls on its tokens."),
        holds=lambda step, v: kl_pulls(step, v.passed, rows(step, v.group)),
    ),
    "entropy_pulls": Kind(
        text=tr("The entropy bonus still pulls on its tokens."),
        holds=lambda step, v: entropy_pulls(step, v.passed, rows(step, v.group)),
    ),
    "kl_pulls_them": Kind(
        text=tr("The KL term still pulls on them."),
        holds=lambda step, v: kl_pulls(step, v.passed, rows(step, None)),
    ),
    "entropy_pulls_them": Kind(
        text=tr("The entropy bonus still pulls on them."),
        holds=lambda step, v: entropy_pulls(step, v.passed, rows(step, None)),
    ),
    "needs_others": Kind(
        text=tr("A group size of 2 or more, or a baseline that is not the group's, can give it a signal."),
        holds=lambda step, v: all(_alone(step, g, whole=True) for g in _those(step, v)),
    ),
    "needs_scores": Kind(
        text=tr("Two scored completions can give it a signal."),
        holds=lambda step, v: any(len(own) < 2 for own in _compared(step, v)),
    ),
    "needs_easier": Kind(
        text=tr("An easier prompt or a larger group may bring a right answer."),
        holds=lambda step, v: has_difficulty(step) and all(_means(step, v, "wrong")),
    ),
    "needs_harder": Kind(
        text=tr("A harder prompt or a larger group may bring a difference."),
        holds=lambda step, v: has_difficulty(step) and all(_means(step, v, "right")),
    ),
    "needs_difference": Kind(
        text=tr("A larger group makes a difference more likely."),
        holds=lambda step, v: (
            not step.settings.is_recorded and any(_means(step, v, "right", "wrong", "highest", "lowest", "open"))
        ),
    ),
    "may_differ": Kind(
        text=tr("Another prompt or a larger group may bring a difference."),
        holds=lambda step, v: step.settings.is_recorded,
    ),
    "needs_rewards": Kind(
        text=tr("This task pays a prompt the same for every answer; only other rewards can make a difference."),
        holds=lambda step, v: all(_means(step, v, "constant")),
    ),
    "highest": Kind(
        text=tr("Nothing is paid more than {reward} here."),
        holds=lambda step, v: _all_paid(step, v) and all(_means(step, v, "highest")),
    ),
    "blown_up": Kind(
        text=tr(
            "The rewards differ by only {spread}, yet dividing by their standard deviation makes advantages of up to "
            "{largest} of it. A larger δ, or no division, keeps rounding from becoming a push."
        ),
        holds=_blown_up,
    ),
    "damped": Kind(
        text=tr(
            "The standard deviation {std} is below δ = {delta}, which damps the advantages to at most {largest}. A "
            "smaller δ lets small differences count."
        ),
        holds=_damped,
    ),
    "all_lone": Kind(
        text=tr("Groups of one completion have nothing to be compared with."),
        holds=lambda step, v: all(_alone(step, g, whole=True) for g in dead(step)),
    ),
    "all_lone_scored": Kind(
        text=tr("A single scored completion has nothing to be compared with."),
        holds=lambda step, v: within(step) and {len(paid(step, g)) for g in dead(step)} == {1},
    ),
    "unpaid": Kind(
        text=tr("No completion was paid anything."),
        holds=lambda step, v: not _of_steps(step) and not any(paid(step, g).any() for g in groups(step)),
    ),
    "dead": Kind(
        text=lambda v: plural(
            "{count} of {total} group holds equal rewards.", "{count} of {total} groups hold equal rewards.", v.total
        ),
        holds=lambda step, v: _counted(step, v, unscored=False) and not _of_steps(step),
    ),
    "dead_of_steps": Kind(
        text=lambda v: plural(
            "In {count} of {total} group, every step was paid the same.",
            "In {count} of {total} groups, every step was paid the same.",
            v.total,
        ),
        holds=lambda step, v: _counted(step, v, unscored=False) and _of_steps(step),
    ),
    "dead_or_empty": Kind(
        text=lambda v: plural(
            "{count} of {total} group holds equal rewards, or none that is scored.",
            "{count} of {total} groups hold equal rewards, or none that is scored.",
            v.total,
        ),
        holds=lambda step, v: _counted(step, v, unscored=True),
    ),
    "all_equal": Kind(
        text=tr("All rewards are equal."),
        holds=lambda step, v: (
            not _of_steps(step) and [len(paid(step, g)) > 0 and equal(paid(step, g)) for g in groups(step)] == [True]
        ),
    ),
    "all_steps_equal": Kind(
        text=tr("Every step was paid the same."),
        holds=lambda step, v: _of_steps(step) and len(groups(step)) == len(dead(step)) == 1,
    ),
    "none_scored": Kind(
        text=tr("No completion was scored."), holds=lambda step, v: not any(len(paid(step, g)) for g in groups(step))
    ),
    "nothing_learned": Kind(
        text=tr("So every advantage there is 0 and nothing is learned from rewards in this update."),
        holds=lambda step, v: len(dead(step)) == len(groups(step)) and silent(step),
    ),
    "adds_nothing_there": Kind(
        text=tr("So every advantage there is 0 and they add nothing to the push."),
        holds=lambda step, v: 0 < len(dead(step)) < len(groups(step)) and not gained(step)[rows(step, None)].any(),
    ),
    "equal_within": Kind(
        text=tr("Within each group the rewards are equal."),
        holds=lambda step, v: len(dead(step)) == len(groups(step)),
    ),
    "between_prompts": Kind(
        text=tr(
            "Rewards run from {min} to {max}, but only between prompts: within each group they are equal, and only "
            "differences within a group give a signal."
        ),
        holds=_between,
    ),
    "no_spread": Kind(
        text=tr("Every completion was paid {reward}, so there is no spread to learn from."),
        holds=lambda step, v: _no_spread(step, v, whole=True),
    ),
    "no_spread_scored": Kind(
        text=tr("Every completion that was scored was paid {reward}, so there is no spread to learn from."),
        holds=lambda step, v: _no_spread(step, v, whole=False),
    ),
    "cut_off": Kind(
        text=lambda v: plural(
            "{count} of {total} completion was cut off at {limit} tokens, before its end sign, and is scored as it "
            "stands. Cut off is not clipped: its tokens are pushed like all others. A higher limit gives it space to "
            "end.",
            "{count} of {total} completions were cut off at {limit} tokens, before their end sign, and are scored as "
            "they stand. Cut off is not clipped: their tokens are pushed like all others. A higher limit gives them "
            "space to end.",
            v.total,
        ),
        holds=_cut_off,
    ),
}
"""The kinds of claims in this module, by name."""
