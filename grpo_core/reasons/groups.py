"""Reasons for groups without a signal, for rewards that hardly differ or differ only between prompts, and for cut-off
completions.
"""

from __future__ import annotations

import numpy as np

from grpo_core.advantages import EQUAL
from grpo_core.baselines import BASELINES
from grpo_core.claims.cards import Card
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.kl import EXACT, entropy
from grpo_core.lm.calculator import CLOSE
from grpo_core.lm.vocabulary import STOP, encode
from grpo_core.premises import cut_off, has_difficulty, meaning
from grpo_core.reasons.reason import LONGEST_CHIP, Check, Reason
from grpo_core.text import listed, tr
from grpo_core.typeset import plain

BARE_SPREAD = 1e-6
"""Minimum spread of rewards, relative to max(1, |r|), that is not suspected of being a rounding error."""
WIDE = 0.1
"""Minimum advantage that counts as inflated if it results from a smaller spread."""


def group_reason(n: Numbers, passed: int, group: int) -> Reason | None:
    """Return the reason for a group that is dead or whose rewards hardly differ. None for any other group."""
    if not 0 <= group < len(n.compared_rewards):
        return None
    rewards = n.compared_rewards[group]
    scored = rewards[~np.isnan(rewards)]
    return _dead(n, passed, group, scored) if n.dead[group] else _narrow(n, group, scored)


def _dead(n: Numbers, passed: int, group: int, scored: np.ndarray) -> Reason:
    rows = np.flatnonzero(n.step.group == group)
    pushes = bool(np.any(n.advantage[rows]))
    if pushes:
        claims = [_alike(n, group, scored), _although_equal(n, group)]
    else:
        pulled = [Card.of(f"{what}_pulls", group=group, passed=passed) for what in _still_acting(n, passed, rows)]
        still = Card.of("no_advantage", group=group)
        claims = [*_why(n, group, scored), still, *pulled, *_most(n, group, scored)]
        claims += [Card.of(_remedy(n, group, scored), group=group)]
    return Reason.of(
        "note" if pushes else "zero",
        _what(n, group, scored),
        (Quantity("dead_group", group=group), *(Quantity("advantage", row=int(i)) for i in rows[:3])),
        *claims,
    )


def _still_acting(n: Numbers, passed: int, rows: np.ndarray) -> list[str]:
    """Return the terms other than the advantage that have a gradient on these completions: "kl", "entropy"."""
    used = n.used(passed)[rows]
    kl = bool(np.any(n.pull(passed)[rows][used]))
    if n.kl_in_loss and n.objective.kl == EXACT:  # it acts through the full distribution
        exact = n.terms(passed).kl
        kl |= exact is not None and bool((np.abs(exact[rows][used]) > n.precision * 1e-3).any())
    entropy = n.has_entropy_bonus and bool(used.any()) and _bends(n, passed, rows)
    return ["kl"] * kl + ["entropy"] * entropy


def _bends(n: Numbers, passed: int, rows: np.ndarray) -> bool:
    """Return whether the actions in these completions' contexts are not all equally probable."""
    logp = n.step.distribution(passed)
    if logp is None or n.step.context is None:
        return True
    here = logp[np.unique(n.step.context[rows][n.used(passed)[rows]])]
    slope = np.exp(here) * (here + entropy(here)[..., None])
    return bool(np.abs(slope).max(initial=0.0) > n.precision * 1e-3)


def _what(n: Numbers, group: int, scored: np.ndarray) -> str:
    if len(scored) == 0:
        return tr("not scored")
    if len(scored) == 1:
        return "G = 1" if _is_one(n, group) else tr("one scored")
    judged = {"right": tr("all correct"), "wrong": tr("all wrong")}
    return judged.get(meaning(n.step, group, float(scored[0])), tr("all {reward}")).format(reward=plain(scored[0]))


def _is_one(n: Numbers, group: int) -> bool:
    """Return whether the group has a single completion, scored or not."""
    return int((n.step.group == group).sum()) == 1


def _within(n: Numbers) -> bool:
    """Return whether this program computed the advantages by comparing each group only with itself."""
    return BASELINES[n.objective.baseline].within_group and n.step.advantage is None


def _why(n: Numbers, group: int, scored: np.ndarray) -> list[Card]:
    if len(scored) == 0:
        return [Card.of("unscored", group=group)]
    if n.step.advantage is not None:
        return [_alike(n, group, scored)]
    if not _within(n):
        return [_alike(n, group, scored), Card.of(f"rest:{n.objective.baseline}", group=group)]
    if len(scored) == 1:
        return [Card.of("lone" if _is_one(n, group) else "lone_scored", group=group)]
    return [
        Card.of(
            "no_mark_of_steps" if n.objective.credits_steps else "no_mark",
            group=group,
            count=len(scored),
            reward=float(scored[0]),
        )
    ]


def _alike(n: Numbers, group: int, scored: np.ndarray) -> Card:
    """Return the claim that describes in what way the rewards of a group are equal."""
    if len(scored) == 0:
        return Card.of("unscored", group=group)
    return Card.of(
        "all_steps_paid" if n.objective.credits_steps else "all_paid",
        group=group,
        count=len(scored),
        reward=float(scored[0]),
    )


def _although_equal(n: Numbers, group: int | None) -> Card:
    """Return the claim that says why equal rewards, of a group or of all dead groups, have non-zero advantages."""
    if n.step.advantage is not None:
        return Card.of("given", group=group)
    baseline = BASELINES[n.objective.baseline]
    if not baseline.from_critic and not _push_by_themselves(n, group):
        penalised = n.penalised and not n.objective.credits_steps
        kind = "penalised" if baseline.within_group else "penalised_too" if penalised else "by_rounding"
        return Card.of(kind, group=group)
    return Card.of(f"push:{n.objective.baseline}", group=group)


def _push_by_themselves(n: Numbers, group: int | None) -> bool:
    """Return whether rewards of a group, or of any dead group for None, differ from the batch's baseline."""
    baseline = BASELINES[n.objective.baseline]
    if baseline.within_group:
        return False
    every = n.compared_rewards
    rewards = every[n.dead if group is None else [group]]
    rewards = rewards[~np.isnan(rewards)]
    middle = float(np.nanmean(every)) if baseline.mean == "batch" else 0.0
    return bool((np.abs(rewards - middle) > EQUAL * np.maximum(1.0, np.abs(rewards))).any())


def _most(n: Numbers, group: int, scored: np.ndarray) -> list[Card]:
    """Return the claim that the task pays nothing more than this group earned, if there are no right answers."""
    if not len(scored) or meaning(n.step, group, float(scored[0])) != "highest":
        return []
    return [Card.of("highest", group=group, count=len(scored), reward=float(scored[0]))]


def _remedy(n: Numbers, group: int, scored: np.ndarray) -> str:
    """Return what could give the group a signal, as the key of a claim."""
    what = meaning(n.step, group, float(scored[0])) if len(scored) else "open"
    if what == "constant":
        return "needs_rewards"
    if len(scored) < 2 and (not len(scored) or _within(n)):
        return "needs_others" if _is_one(n, group) and len(scored) else "needs_scores"
    if n.step.settings.is_recorded:
        return "may_differ"
    judged = {"wrong": "needs_easier", "right": "needs_harder"} if has_difficulty(n.step) else {}
    return judged.get(what, "needs_difference")


def _remedy_of_all(n: Numbers, dead: np.ndarray, rewards: list[np.ndarray]) -> str:
    """Return what could give all dead groups, or else some of them, a signal."""
    kinds = {_remedy(n, int(group), scored) for group, scored in zip(dead, rewards, strict=True)}
    if len(kinds) == 1:
        return kinds.pop()
    return next((kind for kind in ("may_differ", "needs_scores") if kind in kinds), "needs_difference")


def _narrow(n: Numbers, group: int, scored: np.ndarray) -> Reason | None:
    """Return the reason for rewards that differ by less than δ, or so little that normalizing inflates them."""
    o, rows = n.objective, np.flatnonzero(n.step.group == group)
    elsewhere = n.step.advantage is not None or BASELINES[o.baseline].from_critic or n.penalised
    if elsewhere or not DEVIATIONS[o.std].of_group:
        return None
    spread = float(scored.max() - scored.min())
    std = float(np.std(scored, ddof=DEVIATIONS[o.std].ddof))
    largest = float(np.abs(n.row_advantage[rows]).max())
    at = (Quantity("group_std", group=group), Quantity("advantage", row=int(rows[0])))
    if spread <= BARE_SPREAD * max(1.0, float(np.abs(scored).max())) and largest > WIDE:
        return Reason.of(
            "unhealthy",
            tr("tiny spread blown up"),
            at,
            Card.of("blown_up", group=group, spread=spread, largest=largest),
        )
    if std < o.std_epsilon:
        return Reason.of(
            "note", tr("std below δ"), at, Card.of("damped", group=group, std=std, delta=o.std_epsilon, largest=largest)
        )
    return None


def dead_groups(n: Numbers, passed: int) -> Reason | None:
    """Return the reason to show on the card of dead groups: how many there are, and of what kind."""
    dead = np.flatnonzero(n.dead)
    if not len(dead):
        return None
    rewards = [row[~np.isnan(row)] for row in n.compared_rewards[dead]]
    sorts = [_what(n, int(group), scored) for group, scored in zip(dead, rewards, strict=True)]
    alone = all(len(scored) == 1 for scored in rewards)
    count, total = len(dead), len(n.dead)
    at = tuple(Quantity("dead_group", group=int(g)) for g in dead[:8])
    counted = {sort: sorts.count(sort) for sort in dict.fromkeys(sorts)}
    chip = next(iter(counted)) if count == total and len(counted) == 1 else _counted(counted, count, total)
    if alone and _within(n):
        which = Card.of("all_lone" if all(_is_one(n, int(group)) for group in dead) else "all_lone_scored")
    elif (
        not BASELINES[n.objective.baseline].subtracts
        and n.step.advantage is None
        and not n.advantage.any()
        and not n.objective.credits_steps
    ):
        which = Card.of("unpaid")
    elif total > 1:
        empty = any(len(scored) == 0 for scored in rewards)
        which = Card.of(
            "dead_or_empty" if empty else "dead_of_steps" if n.objective.credits_steps else "dead",
            count=count,
            total=total,
        )
    elif n.objective.credits_steps:
        which = Card.of("all_steps_equal")
    else:
        which = Card.of("all_equal" if len(rewards[0]) else "none_scored")
    if np.any(n.advantage[np.isin(n.step.group, dead)]):
        return Reason.of("note", chip, at, which, _although_equal(n, None))
    pulled = _still_acting(n, passed, np.flatnonzero(np.isin(n.step.group, dead)))
    wrong = count == total and all(_is_failure(n, int(g), own) for g, own in zip(dead, rewards, strict=True))
    return Reason.of(
        "unhealthy" if wrong or alone else "note",
        chip,
        at,
        which,
        Card.of("nothing_learned" if count == total else "adds_nothing_there"),
        *(Card.of(f"{what}_pulls_them", passed=passed) for what in pulled),
        Card.of(_remedy_of_all(n, dead, rewards), group=None),
    )


def _is_failure(n: Numbers, group: int, scored: np.ndarray) -> bool:
    """Return whether the group earned as little as possible. Of another trainer's reward of 0, this is assumed."""
    if len(scored) < 2:
        return False
    least = meaning(n.step, group, float(scored[0])) in ("wrong", "lowest", "constant")
    return least or (n.step.settings.is_recorded and float(scored[0]) == 0)


def _counted(counted: dict[str, int], count: int, total: int) -> str:
    text = listed(f"{sort}: {number}" for sort, number in counted.items())
    return text if len(text) <= LONGEST_CHIP else tr("{count} of {total} dead").format(count=count, total=total)


def reward_std(n: Numbers) -> Reason | None:
    """Return the reason to show on the card of the reward's spread if all rewards are equal within their groups."""
    scored = n.step.rewards[~np.isnan(n.step.rewards)]
    if n.objective.credit == "process":  # a spread of total rewards says nothing about the steps
        return None
    if not n.dead.all() or not len(scored) or (~np.isnan(n.compared_rewards)).sum(axis=-1).max() < 2:
        return None
    at = tuple(Quantity("reward_std", group=g) for g in range(min(len(n.dead), 8)))
    if not n.without_signal:
        return Reason.of("note", tr("equal, yet they push"), at, Card.of("equal_within"), _although_equal(n, None))
    if scored.max() - scored.min() > BARE_SPREAD * max(1.0, float(np.abs(scored).max())):
        ends = {"min": float(scored.min()), "max": float(scored.max())}
        return Reason.of("zero", tr("differs only by prompt"), at, Card.of("between_prompts", **ends))
    every = len(scored) == len(n.step.rewards)
    return Reason.of(
        "zero",
        tr("all rewards equal"),
        at,
        Card.of("no_spread" if every else "no_spread_scored", reward=float(scored[0])),
    )


def truncated(n: Numbers) -> Reason | None:
    """Return the reason to show on the card of the mean length: how many completions reached the limit.

    They are the first thing to check if no answer is correct.
    """
    step = n.step
    if not step.settings.is_language:
        return None
    signs = {"stop": STOP, "call_end": encode(CLOSE)[0]}
    cut = np.flatnonzero(cut_off(step, **signs))
    if not len(cut):
        return None
    count, total, limit = len(cut), len(step.tokens), step.settings.language.max_tokens
    return Reason.of(
        "unhealthy" if 2 * count > total else "note",
        tr("{count} of {total} cut off").format(count=count, total=total),
        tuple(Quantity("written", row=int(row)) for row in cut[:8]),
        Card.of("cut_off", count=count, total=total, limit=limit, **signs),
    )


CHECKS: dict[str, Check] = {
    "dead_groups": dead_groups,
    "length": lambda n, passed: truncated(n),
    "reward_std": lambda n, passed: reward_std(n),
}
"""Checks by the metric to which the reason belongs."""
