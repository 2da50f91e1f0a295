"""Checks of rewards and advantages, which every source has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.config import Settings
from grpo_core.deviations import DEVIATIONS
from grpo_core.errors import NotRecordedError, shortened
from grpo_core.foreign.recording import Completions
from grpo_core.lm.final_answer import ends_on
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.health.check import Measure, Verdict, worst
from grpo_core.trainers.health.finding import Evidence
from grpo_core.trainers.health.groups import counted, scored
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update

SHOWN = 5
"""Least number of right answers with the lowest reward that make a finding, and the number of those shown."""


def unscored(update: Update) -> Measure | None:
    """Measure the share of completions without a reward, with the first of them as evidence."""
    table = update.completions
    rows = np.flatnonzero(counted(table))
    if not len(rows):
        return None
    lost = rows[np.isnan(table.rewards[rows])]
    seen = (update.evidence(tr("it has no reward"), row) for row in lost[:2])
    return Measure.of(update, len(lost) / len(rows), *seen, lost=len(lost), rows=len(rows))


def judge_unscored(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for missing rewards in a run in which other completions have rewards."""
    lost, rows = sum(m.more["lost"] for m in measures), sum(m.more["rows"] for m in measures)
    those = [m for m in measures if m.more["lost"]]
    if not those or lost == rows or lost / rows < limit("missing"):
        return None
    what = Fault.of("unscored", share=lost / rows, count=lost, all=rows, label=those[0].label)
    return Verdict.of(grade("missing"), those, what)


def parts_of(update: Update) -> tuple[Completions, np.ndarray, tuple[str, ...], np.ndarray]:
    """Return the completions, and the scores (B, K), the names and the weights (K,) of the reward functions.

    Without names, they are numbers.

    Raises:
        NotRecordedError: there are no completions, or only one reward function.
    """
    table, parts = update.completions, update.completions.reward_parts
    if parts is None or parts.shape[1] < 2:
        raise NotRecordedError(tr("Only one reward is recorded."))
    names = table.reward_names or tuple(str(k + 1) for k in range(parts.shape[1]))
    return table, parts, names, np.array(table.reward_weights or [1.0] * parts.shape[1])


def advantages(update: Update) -> np.ndarray:
    """Return the advantage of each completion, (B,).

    Raises:
        NotRecordedError: there are none.
    """
    advantage = update.completions.advantage
    if advantage is None or np.isnan(advantage).all():
        raise NotRecordedError(tr("No advantages are recorded."))
    return advantage


def spread_of_parts(update: Update) -> Measure | None:
    """Measure the covariance of the weighted reward functions within groups, and the range of each."""
    table, parts, names, weights = parts_of(update)
    rows = counted(table) & np.isfinite(parts).all(axis=1)
    if not rows.any():
        return None
    parts, group = (parts * weights)[rows], table.group[rows]
    sums = np.zeros((int(group.max()) + 1, parts.shape[1]))
    np.add.at(sums, group, parts)
    centred = parts - (sums / np.maximum(np.bincount(group), 1)[:, None])[group]
    return Measure.of(
        update,
        float(len(parts)),
        names=names,
        weights=weights,
        covariance=centred.T @ centred,
        low=parts.min(axis=0),
        high=parts.max(axis=0),
    )


def judge_constant_part(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a reward function that is constant over all completions, or over those of each prompt."""
    measures = [m for m in measures if m.more["names"] == measures[0].more["names"]]
    count = sum(m.value for m in measures)
    if len(measures) < limit("updates") or count < limit("rows"):
        return None
    low, high = np.min([m.more["low"] for m in measures], axis=0), np.max([m.more["high"] for m in measures], axis=0)
    spread = np.sqrt(np.diag(sum(m.more["covariance"] for m in measures)) / count)
    flat: list[Fault] = []
    tiny = limit("part_constant")
    for name, weight, lowest, highest, within in zip(
        measures[0].more["names"], measures[0].more["weights"], low, high, spread, strict=True
    ):
        if weight == 0 or within > tiny * max(1.0, abs(lowest), abs(highest)):
            continue
        if highest - lowest <= tiny * max(1.0, abs(highest)):
            flat.append(Fault.of("constant", name=name, value=float(lowest / weight)))
        else:
            flat.append(Fault.of("between", name=name))
    if not flat or len(flat) == len(low):  # without any variation the groups are dead, which is a different finding
        return None
    o = settings.objective
    whole = DEVIATIONS[o.std].of_batch and any(claim.kind == "between" for claim in flat)  # it increases the divisor
    if BASELINES[o.baseline].within_group and settings.recorded.names_loss and not whole:
        flat.append(Fault.of("adds_nothing", names=tuple(dict(claim.values)["name"] for claim in flat)))
    seen = plural("{count} completion", "{count} completions", int(count)).format(count=int(count))
    evidence = [Evidence(step=measures[0].label, what=seen)]
    return Verdict.of(grade("part_constant"), measures, *flat, evidence=evidence)


def judge_fighting_parts(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for two reward functions that work against each other."""
    measures = [m for m in measures if m.more["names"] == measures[0].more["names"]]
    rows = sum(m.value for m in measures)
    if rows < limit("rows"):
        return None
    covariance, names = sum(m.more["covariance"] for m in measures) / rows, measures[0].more["names"]
    opposed = []
    for i in range(len(names)):
        for j in range(i):
            correlation, ratio = _opposition(covariance, i, j)
            if correlation <= limit("opposed") and ratio >= limit("opposed_comparable"):
                opposed.append((correlation, j, i))
    if not opposed:
        return None
    correlation, i, j = min(opposed)
    left = covariance[i, i] + covariance[j, j] + 2 * covariance[i, j]
    what = Fault.of(
        "fight",
        one=names[i],
        other=names[j],
        correlation=correlation,
        share=float(left / (covariance[i, i] + covariance[j, j])),
    )
    seen = [
        Evidence(
            step=m.label, what=tr("correlation {value:.2f}").format(value=_opposition(m.more["covariance"], i, j)[0])
        )
        for m in measures[:5]
    ]
    return Verdict.of(grade("opposed"), measures, what, evidence=seen)


def _opposition(covariance: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """Return the correlation of two parts and the ratio of the smaller spread to the larger. 0 if one does not vary."""
    one, other = np.sqrt(max(covariance[i, i], 0.0)), np.sqrt(max(covariance[j, j], 0.0))
    if min(one, other) <= 1e-12 * max(one, other, 1e-12):
        return 0.0, 0.0
    return float(covariance[i, j] / (one * other)), float(min(one, other) / max(one, other))


def largest_advantage(update: Update) -> Measure | None:
    """Measure the largest advantage, and the magnitudes of all advantages."""
    advantage, table = advantages(update), update.completions
    sizes = np.abs(advantage)
    known = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
    if not len(known):
        return None
    order = known[np.argsort(-sizes[known])][:3]
    largest, median = float(sizes[order[0]]), float(np.median(sizes[known]))
    what = tr("advantage {value:.4g}, reward {reward:.4g}")
    seen = (
        update.evidence(what.format(value=advantage[row], reward=table.rewards[row]), row)
        for row in order
        if sizes[row] >= limit("advantage_large")
    )
    return Measure.of(update, largest, *seen, median=median, share=float(largest / sizes[known].sum()))


def judge_outliers(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for advantages far beyond those of other completions of the run."""
    usual = float(np.median([m.more["median"] for m in measures]))
    those = [m for m in measures if m.value >= limit("advantage_large") and m.value >= limit("advantage_far") * usual]
    if not those:
        return None
    most = max(those, key=lambda m: m.value)
    what = Fault.of(
        "outlier",
        largest=most.value,
        label=most.label,
        times=most.value / usual,
        usual=usual,
        share=most.more["share"],
    )
    divided = DEVIATIONS[settings.objective.std].divides and settings.recorded.names_loss
    seen, advice = worst(sorted(those, key=lambda m: -m.value)), ("limit_reward",) if divided else ()
    return Verdict.of(grade("advantage_far"), those, what, evidence=seen, advice=advice)


def far_rewards(update: Update) -> Measure | None:
    """Measure the rewards of the completions that count, with the largest as evidence."""
    table = scored(update)
    rows = np.flatnonzero(counted(table) & np.isfinite(table.rewards))
    if not len(rows):
        return None
    paid = table.rewards[rows]
    most = int(rows[np.argmax(np.abs(paid - np.median(paid)))])
    seen = update.evidence(tr("reward {reward:.4g}").format(reward=table.rewards[most]), most)
    return Measure.of(update, float(np.abs(paid - np.median(paid)).max()), seen, paid=paid)


def judge_far_rewards(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for rewards far beyond all others, which dividing by a standard deviation hides in the advantages."""
    every = np.concatenate([m.more["paid"] for m in measures])
    if len(every) < limit("rows"):
        return None
    middle = float(np.median(every))
    usual = float(np.quantile(np.abs(every - middle), limit("reward_usual")))
    least = max(limit("reward_far") * usual, limit("reward_large"))
    those = [m for m in measures if np.abs(m.more["paid"] - middle).max() >= least]
    if not those or not usual > 0:
        return None
    far = np.abs(every - middle)
    what = Fault.of(
        "far_rewards",
        count=int((far >= least).sum()),
        all=len(every),
        nearest=float(far[far >= least].min()),
        median=middle,
        usual=usual,
    )
    return Verdict.of(grade("reward_far"), those, what)


def answered(update: Update) -> Measure | None:
    """Measure the share of completions of the lowest reward that end on the right answer, with examples."""
    table = scored(update)
    if table.answers is None:
        raise NotRecordedError(tr("The right answers are not recorded."))
    rows = [row for row in np.flatnonzero(counted(table) & np.isfinite(table.rewards)) if table.answers[row]]
    low = float(table.rewards[rows].min()) if rows else math.nan
    lowest = [row for row in rows if table.rewards[row] == low]
    right = [row for row in lowest if ends_on(table.completions[row] or "", table.answers[row] or "")]
    if not lowest:
        return None
    seen = []
    for row in right[:SHOWN]:
        facts = {"reward": table.rewards[row], "answer": shortened(table.answers[row] or "", 40)}
        seen.append(update.evidence(tr("reward {reward:.4g}; the right answer is {answer}").format(**facts), int(row)))
    return Measure.of(update, len(right) / len(lowest), *seen, low=low, right=len(right), all=len(lowest))


def judge_answered(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for completions that end on the right answer and have the lowest reward of the run."""
    low = min(m.more["low"] for m in measures)
    those = [m for m in measures if m.more["low"] == low]
    right, every = (sum(m.more[name] for m in those) for name in ("right", "all"))
    if right < SHOWN or right < limit("answered") * every:
        return None
    what = Fault.of("answered", count=right, all=every, low=low)
    shown = [m for m in those if m.more["right"]]
    return Verdict.of(grade("answered"), shown, what)


def means_of_parts(update: Update) -> Measure | None:
    """Measure the mean and spread of each reward function before weighting.

    A function with weight 0, which is only monitored, is measured, too.
    """
    table, parts, names, weights = parts_of(update)
    rows = counted(table) & np.isfinite(parts).all(axis=1)
    if rows.sum() < 2:
        return None
    parts = parts[rows]
    means, spreads = parts.mean(axis=0), parts.std(axis=0, ddof=1)
    return Measure.of(
        update, float((parts @ weights).mean()), names=names, weights=weights, means=means, spreads=spreads
    )


def judge_exploited(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check whether the total reward and one function rise during the run while another function falls.

    The first third of the run is compared with the last.
    """
    measures = [m for m in measures if m.more["names"] == measures[0].more["names"]]
    third = len(measures) // 3
    if len(measures) < limit("exploited_updates"):
        return None
    means = np.array([m.more["means"] for m in measures])
    before, after = means[:third], means[-third:]
    change = after.mean(axis=0) - before.mean(axis=0)
    error = np.sqrt((before.var(axis=0, ddof=1) + after.var(axis=0, ddof=1)) / third)
    usual = np.median([m.more["spreads"] for m in measures], axis=0)
    sure = (np.abs(change) > limit("exploited_errors") * error) & (
        np.abs(change) > limit("exploited_spreads") * np.maximum(usual, 1e-12)
    )
    weights = measures[0].more["weights"]
    gains, losses = sure & (change * weights > 0), sure & (change < 0) & (weights >= 0)
    sums = [m.value for m in measures]
    rise = float(np.mean(sums[-third:]) - np.mean(sums[:third]))
    if not gains.any() or not losses.any() or rise <= 0:
        return None
    up = int(np.argmax(np.where(gains, change * weights, -math.inf)))
    down = int(np.argmin(np.where(losses, change, math.inf)))
    names = measures[0].more["names"]
    what = Fault.of(
        "exploited",
        up=names[up],
        gain=float(change[up]),
        down=names[down],
        loss=float(-change[down]),
        rise=rise,
    )
    least = before[:, down].min()
    began = next((m for m in measures[third:] if m.more["means"][down] < least), measures[-third])
    seen = [
        Evidence(
            step=m.label,
            what=tr("“{up}” {gain:.3g}, “{down}” {loss:.3g}").format(
                up=names[up], gain=m.more["means"][up], down=names[down], loss=m.more["means"][down]
            ),
        )
        for m in (measures[0], began, measures[-1])
    ]
    bad = grade("exploited_unpaid" if weights[down] == limit("exploited_unpaid") else "exploited_updates")
    return Verdict.of(bad, [began], what, evidence=seen)
