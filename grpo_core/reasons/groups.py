"""Which groups carry no signal, and why; rewards that differ only between prompts, or hardly at all."""

from __future__ import annotations

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.kl import EXACT
from grpo_core.reasons.reason import LONGEST_CHIP, Check, Reason
from grpo_core.text import tr
from grpo_core.typeset import plain

BARE_SPREAD = 1e-6
"""A spread of rewards below this, relative to max(1, |r|), is more likely a rounding error than a judgement."""
WIDE = 0.1
"""An advantage above this from such a spread has been blown up."""
PAID = {0.0: tr("all wrong"), 1.0: tr("all right")}
"""Names of groups whose equal rewards are these."""


def group_reason(n: Numbers, passed: int, group: int) -> Reason | None:
    """The reason for a group that is dead, or whose rewards hardly differ; None for any other."""
    if not 0 <= group < len(n.compared_rewards):
        return None
    rewards = n.compared_rewards[group]
    scored = rewards[~np.isnan(rewards)]
    return _dead(n, passed, group, scored) if n.dead[group] else _narrow(n, group, scored)


def _dead(n: Numbers, passed: int, group: int, scored: np.ndarray) -> Reason:
    rows = np.flatnonzero(n.step.group == group)
    pulled = _still_acting(n, passed, rows)
    advantages = n.advantage[rows]
    if np.any(advantages):
        sentence = f"{_alike(scored)} {_although_equal(n)}"
    else:
        effect = tr("Every advantage is 0, so its rewards push nothing.")
        more = [tr("{what} still pulls on its tokens.").format(what=what) for what in pulled]
        sentence = " ".join([_why(n, scored), effect, *more, _remedy(n, scored)])
    return Reason(
        key=f"group:{group}", chip=_what(scored), sentence=sentence,
        kind="note" if np.any(advantages) else "zero",
        quantities=(Quantity("dead_group", group=group), *(Quantity("advantage", row=int(i)) for i in rows[:3])),
    )  # fmt: skip


def _still_acting(n: Numbers, passed: int, rows: np.ndarray) -> list[str]:
    """What acts on the tokens of these completions without an advantage: the KL, an entropy bonus."""
    kl = bool(np.any(n.pull(passed)[rows]))
    if n.kl_in_loss and n.objective.kl == EXACT:  # it acts through the whole distribution
        exact = n.terms(passed).kl
        kl |= exact is not None and bool((np.abs(exact[rows]) > n.precision * 1e-3).any())
    used = bool(n.used(passed)[rows].any())
    return [tr("The KL term")] * kl + [tr("The entropy bonus")] * (n.has_entropy_bonus and used)


def _what(scored: np.ndarray) -> str:
    if len(scored) == 0:
        return tr("not scored")
    if len(scored) == 1:
        return "G = 1"
    paid = float(scored[0])
    return PAID[paid] if paid in PAID else tr("all {reward}").format(reward=plain(paid))


def _within(n: Numbers) -> bool:
    """Whether a group is compared with itself alone."""
    return BASELINES[n.objective.baseline].within_group or n.step.advantage is not None


def _why(n: Numbers, scored: np.ndarray) -> str:
    if len(scored) == 0:
        return tr("No completion of this group was scored.")
    if not _within(n):
        return f"{_alike(scored)} {BASELINES[n.objective.baseline].equal_rest}"
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


def _although_equal(n: Numbers) -> str:
    """Why equal rewards have advantages that are not 0."""
    if n.step.advantage is not None:
        return tr("The advantages are those that the source of the record gave; they are not 0.")
    if n.penalised and BASELINES[n.objective.baseline].within_group and not n.by_step:
        return tr(
            "The advantages are not 0: what is compared is the reward less β times the completion's KL from the "
            "reference, and that differs from completion to completion."
        )
    return BASELINES[n.objective.baseline].equal_push


def _remedy(n: Numbers, scored: np.ndarray) -> str:
    if len(scored) == 1 and _within(n):
        return tr("A group size of 2 or more, or a baseline that is not the group's, gives it a signal.")
    if len(scored) == 0:
        return tr("Two scored completions would give it a signal.")
    if scored.max() <= 0:
        return tr("An easier prompt or a larger group makes a success more likely.")
    return tr("A harder prompt or a larger group makes a difference more likely.")


def _narrow(n: Numbers, group: int, scored: np.ndarray) -> Reason | None:
    """Rewards that differ, but by less than δ, or by so little that dividing by their std blows them up."""
    o, rows = n.objective, np.flatnonzero(n.step.group == group)
    if n.step.advantage is not None or DEVIATIONS[o.std].of_batch or not DEVIATIONS[o.std].divides or n.penalised:
        return None
    spread = float(scored.max() - scored.min())
    std = float(np.std(scored, ddof=DEVIATIONS[o.std].ddof))
    largest = float(np.abs(n.row_advantage[rows]).max())
    at = (Quantity("group_std", group=group), Quantity("advantage", row=int(rows[0])))
    if spread <= BARE_SPREAD * max(1.0, float(np.abs(scored).max())) and largest > WIDE:
        return Reason(
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
    if std < o.std_epsilon:
        return Reason(
            key=f"group:{group}",
            chip=tr("std below δ"),
            kind="note",
            quantities=at,
            sentence=tr(
                "The standard deviation {std} is below δ = {std_epsilon}, which damps the "
                "advantages to at most {largest}. A smaller δ lets small differences count."
            ).format(std=plain(std), std_epsilon=plain(o.std_epsilon), largest=plain(largest)),
        )
    return None


def dead_groups(n: Numbers, passed: int) -> Reason | None:
    """The reason on the card of dead groups: how many there are, and of which sort."""
    dead = np.flatnonzero(n.dead)
    if not len(dead):
        return None
    rewards = [row[~np.isnan(row)] for row in n.compared_rewards[dead]]
    sorts = [_what(scored) for scored in rewards]
    alone = all(len(scored) == 1 for scored in rewards)
    count, total = len(dead), len(n.dead)
    at = tuple(Quantity("dead_group", group=int(g)) for g in dead[:8])
    counted = {sort: sorts.count(sort) for sort in dict.fromkeys(sorts)}
    chip = next(iter(counted)) if count == total and len(counted) == 1 else _counted(counted, count, total)
    if alone and _within(n):
        which = tr("Groups of one completion have nothing to be compared with.")
    elif not BASELINES[n.objective.baseline].subtracts and n.step.advantage is None and not n.advantage.any():
        which = tr("No completion was paid anything.")
    elif total > 1:
        which = tr("{count} of {total} groups hold equal rewards.").format(count=count, total=total)
    else:
        which = tr("All rewards are equal.")
    if np.any(n.advantage[np.isin(n.step.group, dead)]):
        return Reason(
            key="dead_groups", chip=chip, kind="note", quantities=at, sentence=f"{which} {_although_equal(n)}"
        )  # fmt: skip
    sentences = [
        which,
        tr("So every advantage there is 0 and nothing is learned from rewards in this update.")
        if count == total
        else tr("So every advantage there is 0 and they add nothing to the push."),
    ]
    acting = _still_acting(n, passed, np.flatnonzero(np.isin(n.step.group, dead)))
    sentences += [tr("{what} still pulls on them.").format(what=what) for what in acting]
    wrong = count == total and all(len(scored) > 1 and scored[0] == 0 for scored in rewards)
    sentences.append(_remedy(n, rewards[0]))
    kind = "unhealthy" if wrong or alone else "note"
    return Reason(key="dead_groups", chip=chip, sentence=" ".join(sentences), kind=kind, quantities=at)


def _counted(counted: dict[str, int], count: int, total: int) -> str:
    text = ", ".join(f"{sort} {number}" for sort, number in counted.items())
    return text if len(text) <= LONGEST_CHIP else tr("{count} of {total} dead").format(count=count, total=total)


def reward_std(n: Numbers) -> Reason | None:
    """The reason on the card of the spread: it is 0 within groups, whatever it is between them."""
    scored = n.step.rewards[~np.isnan(n.step.rewards)]
    if n.objective.credit == "process":  # a spread of whole rewards says nothing about the steps
        return None
    if not n.dead.all() or not len(scored) or (~np.isnan(n.compared_rewards)).sum(axis=-1).max() < 2:
        return None
    at = tuple(Quantity("reward_std", group=g) for g in range(min(len(n.dead), 8)))
    if not n.without_signal:
        return Reason(
            key="reward_std", chip=tr("equal, yet they push"), kind="note", quantities=at,
            sentence=tr("Within each group the rewards are equal. {why}").format(why=_although_equal(n)),
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
        sentence=(
            tr("Every completion was paid {scored}, so there is no spread to learn from.")
            if len(scored) == len(n.step.rewards)
            else tr("Every completion that was scored was paid {scored}, so there is no spread to learn from.")
        ).format(scored=plain(float(scored[0]))),
    )


CHECKS: dict[str, Check] = {
    "dead_groups": dead_groups,
    "reward_std": lambda n, passed: reward_std(n),
}
"""By the metric that the reason belongs to."""
