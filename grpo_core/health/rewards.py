"""Checks of rewards and advantages: what every source has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grpo_core.advantages import equal_rewards
from grpo_core.baselines import BASELINES
from grpo_core.claims.faults import Fault
from grpo_core.claims.findings import EqualGroups
from grpo_core.config import Settings
from grpo_core.deviations import DEVIATIONS
from grpo_core.health.check import Measure, Verdict, lasting, worst
from grpo_core.health.finding import Evidence
from grpo_core.health.update import Update
from grpo_core.runs.importers.source import Completions
from grpo_core.text import tr

DEAD = 0.5
"""Share of groups without a difference from which training is mostly idle."""
OF_A_KIND = 0.25
"""Share of all groups that must be dead for one reason for that reason to be named."""
RISE_ERRORS = 2.0
"""Standard errors by which a mean reward rises where a run of sparse rewards learns."""
ENOUGH_GROUPS, ENOUGH_ROWS, ENOUGH_UPDATES = 6, 24, 3
MISSING = 0.01
"""Share of rewards whose loss is worth a word. A program that now and then fails on an answer loses fewer."""
OPPOSED, COMPARABLE = -0.8, 0.3
"""Correlation from which two parts fight, and the ratio of their spreads from which the weaker one counts."""
FAR, LARGE = 20.0, 10.0
"""An advantage is an outlier when it is so many times the median and so large."""


def no_rewards(update: Update) -> str:
    """Why the rewards of groups are not known."""
    if update.table is None:
        return update.why_no_table
    if not np.isfinite(update.table.rewards).any():
        return tr("No completion has a reward.")
    return ""


def no_table(update: Update) -> str:
    """The reason why completions are not known, empty where they are."""
    return update.why_no_table if update.table is None else ""


def unscored(update: Update) -> Measure | None:
    """The share of completions without a reward, the first of them as evidence."""
    table = update.table
    assert table is not None
    rows = np.flatnonzero(_counted(table))
    if not len(rows):
        return None
    lost = rows[np.isnan(table.rewards[rows])]
    return Measure(
        label=update.label, value=len(lost) / len(rows), more={"lost": len(lost), "rows": len(rows)},
        evidence=tuple(
            Evidence(step=update.label, row=int(row) + 1, quote=update.quote(int(row)), what=tr("it has no reward"))
            for row in lost[:2]
        ),
    )  # fmt: skip


def judge_unscored(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Rewards that are missing in a run that has others."""
    lost, rows = sum(m.more["lost"] for m in measures), sum(m.more["rows"] for m in measures)
    those = [m for m in measures if m.more["lost"]]
    if not those or lost == rows or lost / rows < MISSING:
        return None
    first = those[0].label
    what = Fault.of("unscored", share=lost / rows, count=lost, all=rows, label=first)
    return Verdict(what=[what], began=first, evidence=worst(those), severity="warning")


def no_parts(update: Update) -> str:
    """Why several reward functions are not known apart."""
    if update.table is None:
        return update.why_no_table
    if update.table.reward_parts is None or update.table.reward_parts.shape[1] < 2:
        return tr("Only one reward is recorded.")
    return ""


def no_advantage(update: Update) -> str:
    """Why advantages are not known."""
    if update.table is None:
        return update.why_no_table
    advantage = update.table.advantage
    return "" if advantage is not None and not np.isnan(advantage).all() else tr("No advantages are recorded.")


def dead_groups(update: Update) -> Measure | None:
    """The share of groups whose rewards are all equal and that give no advantage, with the rewards of these.

    A group of equal rewards with recorded advantages that are not 0 does push: GDPO's, whose parts differ.
    """
    table = update.table
    assert table is not None
    rows = _counted(table) & np.isfinite(table.rewards)
    groups = [np.flatnonzero(rows & (table.group == g)) for g in np.unique(table.group[rows])]
    groups = [members for members in groups if len(members) > 1]
    if not groups:
        return None
    equal = [members for members in groups if bool(equal_rewards(table.rewards[members][None])[0])]
    gained = table.advantage
    dead = [rows_of for rows_of in equal if gained is None or not np.nan_to_num(gained[rows_of]).any()]
    known = tuple(gained is not None and not bool(np.isnan(gained[rows_of]).any()) for rows_of in dead)
    rewards = tuple(float(table.rewards[members[0]]) for members in dead)
    cut = table.truncated
    return Measure(
        label=update.label, value=len(dead) / len(groups),
        more={
            "groups": len(groups), "dead": rewards, "equal": len(equal) / len(groups),
            "known": known, "mean": float(table.rewards[rows].mean()), "low": float(table.rewards[rows].min()),
            "high": float(table.rewards[rows].max()),
            "cut": tuple(cut is not None and bool(cut[members].all()) for members in dead),
        },
        evidence=tuple(
            Evidence(
                step=update.label, row=int(members[0]) + 1, quote=update.quote(int(members[0])),
                what=tr("all {count} completions of this prompt have the reward {reward:.4g}").format(
                    count=len(members), reward=table.rewards[members[0]]
                ),
            )
            for members in dead[:3]
        ),
    )  # fmt: skip


def judge_right(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Groups in which everything is right."""
    return _judge_dead(measures, "right")


def judge_wrong(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Groups in which everything is wrong."""
    return _judge_dead(measures, "wrong")


def judge_same(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Groups in which everything has the same middling reward."""
    return _judge_dead(measures, "same")


def _judge_dead(measures: Sequence[Measure], kind: str) -> Verdict | None:
    since = lasting(measures, lambda m: m.value >= DEAD, 2)
    groups = sum(m.more["groups"] for m in since)
    if groups < ENOUGH_GROUPS:
        return None
    low, high = min(m.more["low"] for m in measures), max(m.more["high"] for m in measures)
    those = [m for m in since if any(_kind(r, low, high) == kind for r in m.more["dead"])]
    dead = [
        (cut, known)
        for m in since
        for reward, cut, known in zip(m.more["dead"], m.more["cut"], m.more["known"], strict=True)
        if _kind(reward, low, high) == kind
    ]
    if len(dead) < OF_A_KIND * groups:
        return None
    what = EqualGroups(
        since=since[0].label, dead=len(dead), groups=groups, kind=kind, low=low, high=high,
        known=all(known for _, known in dead),
    )  # fmt: skip
    cut_off = kind == "wrong" and all(cut for cut, _ in dead)
    claims = [what, *([Fault.of("all_cut", since=since[0].label, sort=kind)] if cut_off else [])]
    learns = kind == "wrong" and _rises([m.more["mean"] for m in measures])
    return Verdict(
        what=claims, began=those[0].label, evidence=worst(those), severity="notice" if learns else "serious",
        change=tr(
            "The mean reward rises all the same: rewards are sparse, and training goes on from the groups that are not "
            "dead. Easier prompts or more completions a prompt would use more of each batch."
        ) if learns else "",
    )  # fmt: skip


def _rises(means: Sequence[float]) -> bool:
    """Whether the mean reward of the last third of the updates is beyond that of the first by more than chance.

    It is too where every update of the last third has more than twice the most of the first.
    """
    third = len(means) // 3
    if third < 2:
        return False
    before, after = np.array(means[:third]), np.array(means[-third:])
    if after.min() > 2 * before.max() > 0:
        return True
    error = math.sqrt((before.var(ddof=1) + after.var(ddof=1)) / third)
    return bool(after.mean() - before.mean() > RISE_ERRORS * error)


def _kind(reward: float, low: float, high: float) -> str:
    near = 1e-6 * max(abs(low), abs(high), 1e-12)
    if high - low <= near:  # one reward in the whole run: more than nothing is taken for right
        return "right" if reward > 0 else "wrong"
    return "right" if high - reward <= near else "wrong" if reward - low <= near else "same"


def spread_of_parts(update: Update) -> Measure | None:
    """Covariance of the weighted reward functions within groups, and the range of each."""
    table = update.table
    assert table is not None and table.reward_parts is not None
    rows = _counted(table) & np.isfinite(table.reward_parts).all(axis=1)
    if not rows.any():
        return None
    weights = np.asarray(table.reward_weights or (1.0,) * table.reward_parts.shape[1])
    parts, group = (table.reward_parts * weights)[rows], table.group[rows]
    sums = np.zeros((int(group.max()) + 1, parts.shape[1]))
    np.add.at(sums, group, parts)
    centred = parts - (sums / np.maximum(np.bincount(group), 1)[:, None])[group]
    return Measure(
        label=update.label, value=float(len(parts)),
        more={
            "names": _names(table), "weights": weights, "covariance": centred.T @ centred,
            "low": parts.min(axis=0), "high": parts.max(axis=0),
        },
    )  # fmt: skip


def judge_constant_part(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """A reward function that gave the same to all completions, or to all of every prompt."""
    measures = [m for m in measures if m.more["names"] == measures[0].more["names"]]
    if len(measures) < ENOUGH_UPDATES or sum(m.value for m in measures) < ENOUGH_ROWS:
        return None
    low, high = np.min([m.more["low"] for m in measures], axis=0), np.max([m.more["high"] for m in measures], axis=0)
    spread = np.sqrt(np.diag(sum(m.more["covariance"] for m in measures)) / sum(m.value for m in measures))
    flat: list[Fault] = []
    for name, weight, lowest, highest, within in zip(
        measures[0].more["names"], measures[0].more["weights"], low, high, spread, strict=True
    ):
        if weight == 0 or within > 1e-9 * max(1.0, abs(lowest), abs(highest)):
            continue
        if highest - lowest <= 1e-9 * max(1.0, abs(highest)):
            flat.append(Fault.of("constant", name=name, value=float(lowest / weight)))
        else:
            flat.append(Fault.of("between", name=name))
    if not flat or len(flat) == len(low):  # where nothing varies, the groups are dead: that is said there
        return None
    o = settings.objective
    whole = DEVIATIONS[o.std].of_batch and any(claim.kind == "between" for claim in flat)  # it widens what divides
    if BASELINES[o.baseline].within_group and settings.recorded.trainer_settings and not whole:
        flat.append(Fault.of("adds_nothing", names=tuple(dict(claim.values)["name"] for claim in flat)))
    first = measures[0].label
    seen = Evidence(step=first, what=tr("{count} completions").format(count=int(sum(m.value for m in measures))))
    return Verdict(what=flat, began=first, evidence=[seen], severity="warning")


def judge_fighting_parts(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Two reward functions of which one takes what the other gives."""
    measures = [m for m in measures if m.more["names"] == measures[0].more["names"]]
    rows = sum(m.value for m in measures)
    if rows < ENOUGH_ROWS:
        return None
    covariance, names = sum(m.more["covariance"] for m in measures) / rows, measures[0].more["names"]
    opposed = []
    for i in range(len(names)):
        for j in range(i):
            correlation, ratio = _opposition(covariance, i, j)
            if correlation <= OPPOSED and ratio >= COMPARABLE:
                opposed.append((correlation, j, i))
    if not opposed:
        return None
    correlation, i, j = min(opposed)
    left = covariance[i, i] + covariance[j, j] + 2 * covariance[i, j]
    what = Fault.of(
        "fight", one=names[i], other=names[j], correlation=correlation,
        share=float(left / (covariance[i, i] + covariance[j, j])),
    )  # fmt: skip
    seen = [
        Evidence(
            step=m.label, what=tr("correlation {value:.2f}").format(value=_opposition(m.more["covariance"], i, j)[0])
        )
        for m in measures[:5]
    ]
    return Verdict(what=[what], began=measures[0].label, evidence=seen)


def _opposition(covariance: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """Correlation of two parts and the ratio of the smaller spread to the larger; 0 where one does not vary."""
    one, other = np.sqrt(max(covariance[i, i], 0.0)), np.sqrt(max(covariance[j, j], 0.0))
    if min(one, other) <= 1e-12 * max(one, other, 1e-12):
        return 0.0, 0.0
    return float(covariance[i, j] / (one * other)), float(min(one, other) / max(one, other))


def largest_advantage(update: Update) -> Measure | None:
    """The largest advantage, with the sizes of all."""
    table = update.table
    assert table is not None and table.advantage is not None
    sizes = np.abs(table.advantage)
    known = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
    if not len(known):
        return None
    order = known[np.argsort(-sizes[known])][:3]
    return Measure(
        label=update.label, value=float(sizes[order[0]]),
        more={"median": float(np.median(sizes[known])), "share": float(sizes[order[0]] / sizes[known].sum())},
        evidence=tuple(
            Evidence(
                step=update.label, row=int(row) + 1, quote=update.quote(int(row)),
                what=tr("advantage {value:.4g}, reward {reward:.4g}").format(
                    value=table.advantage[row], reward=table.rewards[row]
                ),
            )
            for row in order if sizes[row] >= LARGE
        ),
    )  # fmt: skip


def judge_outliers(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Advantages far beyond those of the other completions of the run."""
    usual = float(np.median([m.more["median"] for m in measures]))
    those = [m for m in measures if m.value >= LARGE and m.value >= FAR * usual]
    if not those:
        return None
    most = max(those, key=lambda m: m.value)
    what = Fault.of(
        "outlier", largest=most.value, label=most.label, times=most.value / usual, usual=usual,
        share=most.more["share"],
    )  # fmt: skip
    divided = DEVIATIONS[settings.objective.std].divides and settings.recorded.trainer_settings
    return Verdict(
        what=[what], began=those[0].label, evidence=worst(sorted(those, key=lambda m: -m.value)),
        change=tr("Limit the reward; see where an advantage of that size comes from.") if divided else "",
    )  # fmt: skip


def _counted(table: Completions) -> np.ndarray:
    return np.ones(len(table.rewards), bool) if table.counted is None else table.counted


def _names(table: Completions) -> tuple[str, ...]:
    assert table.reward_parts is not None
    return table.reward_names or tuple(str(k + 1) for k in range(table.reward_parts.shape[1]))
