"""Checks of the way from a reward to a changed policy: advantages, mask, weights, push, gradient, policy, sampler."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.flow import (
    NEARLY,
    ZERO,
    away_from,
    changes,
    factors,
    from_reference,
    most_idle,
    other_weights,
    weights_by_settings,
    within,
)
from grpo_core.trainers.health.check import Bad, Measure, Verdict, against, lasting, mean, worst
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.groups import counted, dead_groups, scored
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.numerics import no_sampler, noise
from grpo_core.trainers.health.policy_checks import NO_LOSS
from grpo_core.trainers.health.rewards import advantages
from grpo_core.trainers.health.update import Update

NOT_OF_THIS_STEP = tr(
    "The gradient norm is that of one step, and whether the rewards of that step differ within groups is not logged."
)
is_zero = against("gradient_zero", operator.le)
is_no_rate = against("no_rate", operator.le)
is_gone = against("weight_left", operator.lt)
is_otherwise = against("other_weights", operator.gt)


def members(update: Update) -> Measure | None:
    """Measure the size of the largest group of scored completions."""
    table = scored(update)
    rows = counted(table) & np.isfinite(table.rewards)
    if not rows.any():
        return None
    given = update.signals if table.advantage is None else np.nan_to_num(table.advantage) != 0
    largest = float(np.unique(table.group[rows], return_counts=True)[1].max())
    return Measure.of(update, largest, rows=int(rows.sum()), given=None if given is None else bool(given.any()))


def judge_alone(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for completions that are all groups of their own, in a loss that compares within groups."""
    rows = sum(m.more["rows"] for m in measures)
    if rows < limit("groups") or any(m.value > 1 or m.more["given"] for m in measures):
        return None
    known = settings.recorded.names_loss
    if known and not BASELINES[settings.objective.baseline].within_group:
        return None
    sure = known or any(m.more["given"] is not None for m in measures)
    bad = grade("alone") if sure else Grade.NOTICE
    return Verdict.of(bad, measures, Fault.of("alone", count=rows), evidence=())


def given(update: Update) -> Measure | None:
    """Measure the mean size of the advantages in an update whose rewards differ within groups."""
    advantage = advantages(update)
    groups = dead_groups(update) if np.isfinite(update.completions.rewards).any() else None
    if groups is None or groups.more["equal"] == 1:
        return None
    size = float(np.abs(np.nan_to_num(advantage)).mean())
    return Measure.of(update, size, update.evidence(tr("mean size of the advantages: {mean:.3g}").format(mean=size)))


def judge_zero(kind: str, measures: Sequence[Measure], settings: Settings, bad: Bad = is_zero) -> Verdict | None:
    """Check for updates whose measure is 0. ``kind`` is the claim about them."""
    since = lasting(measures, bad)
    if not since:
        return None
    count = sum(bad(m, m) for m in since)
    what = Fault.of(kind, since=since[0].label, count=count, all=len(since))
    return Verdict.of(grade("gradient_zero"), since, what)


def signalled(update: Update) -> tuple[Step, np.ndarray]:
    """Return the tokens of an update, and which completions have an advantage other than 0, boolean (B,).

    Raises:
        NotRecordedError: one of the two is not recorded.
    """
    step = update.tokens
    if update.signals is None:
        raise NotRecordedError(tr("No advantages are recorded."))
    return step, update.signals


def left(update: Update) -> Measure | None:
    """Measure the share of the loss that masks and importance weights leave, of completions with an advantage."""
    step, signal = signalled(update)
    if not signal.any():
        return None
    each = np.nan_to_num(factors(step))
    share = float(np.minimum(each, 1).mean()) if len(each) else 0.0
    zero = float((each == 0).mean()) if len(each) else 1.0
    what = plural(
        "{tokens:,} token counts; the mean factor is {share:.2g}", "{tokens:,} tokens count; the mean factor is "
        "{share:.2g}", len(each),
    ).format(tokens=len(each), share=share)  # fmt: skip
    return Measure.of(update, share, update.evidence(what), tokens=len(each), zero=zero)


def judge_left(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for masks and weights that leave little of the loss."""
    since = lasting(measures, is_gone)
    if not since:
        return None
    first, silent = since[0].label, sum(not m.more["tokens"] for m in since)
    if silent:
        what = Fault.of("nothing_counts", since=first, count=silent, all=len(since))
        return Verdict.of(grade("weight_left"), since, what, advice=("masks",))
    what = Fault.of("weights_gone", since=first, left=mean(since), zero=mean(since, "zero"))
    return Verdict.of(grade("weight_left"), since, what)


def otherwise(update: Update) -> Measure | None:
    """Measure the share of tokens with an importance weight that the trainer's settings do not give."""
    step = update.tokens
    if weights_by_settings(step) is None:
        raise NotRecordedError(tr("Factors that are importance weights alone, with their settings, are not recorded."))
    known = other_weights(step)
    if known is None:
        return None
    share, theirs, ours = known
    summed, *_ = other_weights(step, summed=True) or (1.0,)
    what = tr("mean weight {theirs:.3g}, and {ours:.3g} by the settings").format(theirs=theirs, ours=ours)
    return Measure.of(update, share, update.evidence(what), theirs=theirs, ours=ours, summed=summed)


def judge_otherwise(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for importance weights that do not follow from the log-probabilities."""
    since = lasting(measures, is_otherwise)
    if not since:
        return None
    first, figures = since[0].label, [(m.value, m.more["theirs"], m.more["ours"]) for m in since]
    share, theirs, ours = (float(value) for value in np.mean(figures, axis=0))
    what = [Fault.of("other_weights", since=first, share=share, theirs=theirs, ours=ours)]
    if all(m.more["summed"] <= NEARLY for m in since):
        what.append(Fault.of("summed_weights", since=first))
    return Verdict.of(grade("other_weights"), since, *what)


def push(update: Update) -> Measure | None:
    """Measure the sum of |push| in an update with tokens that count and have an advantage."""
    step, signal = signalled(update)
    if not update.settings.recorded.names_loss:
        raise NotRecordedError(NO_LOSS)
    if not update.terms:
        raise NotRecordedError(tr("The loss of these updates cannot be recomputed."))
    if not signal.any() or not len(factors(step)):
        return None
    seen = update.evidence(tr("the sum of |push| is {total:.3g}").format(total=update.push))
    return Measure.of(update, update.push, seen)


def norm(update: Update) -> Measure | None:
    """Measure the reported norm of the gradient, and why there must be one, if there must.

    Without tokens and completions, also measure at most how probable it is that there need not be one.
    """
    norms = [value for value in update.reported("grad_norm") if np.isfinite(value)]
    if not norms:
        raise NotRecordedError(tr("The trainer's gradient norm (grad_norm) is not recorded."))
    idle: float | None = 0.0
    if update.step is not None and update.signals is not None and update.settings.recorded.names_loss:
        premise = "push" if update.push > 0 else ""
    elif update.step is None and update.table is None:
        idle = most_idle(update.logged, update.reports[0].steps)
        of_log = "spread" if update.logged("dead_groups") is None else "share"
        premise = "" if idle is None or idle == 1 else of_log
    else:
        gained = None if update.table is None or update.step is not None else update.table.advantage
        premise = "advantage" if gained is not None and np.nan_to_num(gained).any() else ""
    if not premise and max(norms) <= ZERO:
        if idle == 1:
            raise NotRecordedError(NOT_OF_THIS_STEP)
        return None
    seen = update.evidence(tr("grad_norm is {value:.3g}").format(value=max(norms)))
    return Measure.of(update, max(norms), seen, premise=premise, idle=idle)


def judge_norm(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a gradient of 0 although tokens are pushed."""
    premise = next((m.more["premise"] for m in reversed(measures) if m.more["premise"]), "")
    since = lasting([m for m in measures if m.more["premise"] == premise], is_zero)
    idle = np.array([m.more["idle"] for m in since])
    count, expected = sum(is_zero(m, m) for m in since), float(idle.sum())
    if count <= expected + limit("reward_errors") * float((idle * (1 - idle)).sum()) ** 0.5:
        return None
    more = {"expected": expected} if premise == "share" else {}
    what = Fault.of(f"gradient_zero:{premise}", since=since[0].label, count=count, all=len(since), **more)
    return Verdict.of(grade("gradient_zero"), since, what)


def rate(update: Update) -> Measure:
    value = update.logged("learning_rate")
    if value is None:
        raise NotRecordedError(tr("The learning rate is not logged."))
    seen = update.evidence(tr("the learning rate is {value:.3g}").format(value=value))
    return Measure.of(update, value, seen)


def moved(update: Update) -> Measure | None:
    """Measure the largest change of a log-probability in an update with an advantage.

    Also collect the beginnings of completions, which other updates may score again.
    """
    step = update.tokens
    change = within(step)
    if change is None and not update.first_tokens and step.ref_logp is None:
        raise NotRecordedError(tr("No completion was scored both before and after an optimizer step."))
    if update.signals is None or not update.signals.any():
        return None
    more = {
        "first": update.first_tokens,
        "noise": noise(update),
        "after": step.scored_after,
        "apart": from_reference(step),
    }
    if change is None:
        return Measure.of(update, float("nan"), **more)
    seen = update.evidence(tr("the largest change is {change:.3g} nats").format(change=change))
    return Measure.of(update, change, seen, **more)


def over_updates(measures: Sequence[Measure]) -> list[Measure]:
    """Return the measures with the changes that several updates show: of beginnings of completions that are scored
    again, and of the distance from a reference that was the policy at first.
    """
    found: list[Measure] = []
    first: dict[int, float] = {}
    for m in measures:
        known = [m.value, *(abs(mine - first[key]) for key, (mine, _) in m.more["first"].items() if key in first)]
        started = measures[0].more["apart"]
        if found and started is not None and started <= m.more["noise"] and m.more["apart"] is not None:
            known.append(m.more["apart"])
        first = {key: mine for key, (mine, _) in m.more["first"].items()} | first
        known = [value for value in known if np.isfinite(value)]
        found.append(dataclasses.replace(m, value=max(known, default=float("nan"))))
    return found


def judge_moved(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for updates that have advantages and yet change nothing."""
    inside = [m for m in measures if np.isfinite(m.value)]
    between = changes([m.more["first"] for m in measures], 0)
    least = limit("noise_single")
    if not inside or max(m.value for m in inside) > least:
        return None
    after = [m for m in inside if m.more["after"]]
    away = [m.more["apart"] for m in measures if m.more["apart"] is not None]
    if len(after) >= limit("updates") and max(m.value for m in inside) == limit("unmoved"):
        what = Fault.of("unmoved", count=len(after))
    elif len(measures) >= limit("still_updates") and between:
        what = Fault.of("still", change=max(between.values()), noise=least)
    elif len(away) >= limit("still_updates"):
        what = Fault.of("still_reference", count=len(away), change=max(away), noise=least)
    else:
        return None
    return Verdict.of(grade("unmoved"), measures, what, evidence=worst(inside))


def start(update: Update) -> Measure:
    """Measure the median difference between policy and reference before the first step."""
    step = update.tokens
    away = from_reference(step, np.median)
    if away is None:
        raise NotRecordedError(tr("No log-probabilities of a reference policy are recorded."))
    steps = step.passes if step.optimizer_step is None else len(np.unique(step.optimizer_step))
    if update.label > steps:
        raise NotRecordedError(tr("The first step of the run is not recorded."))
    return Measure.of(update, away, noise=noise(update))


def judge_start(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a reference that is not the policy with which training starts."""
    first = measures[0]
    if first.value <= max(limit("elsewhere"), first.more["noise"]):
        return None
    return Verdict.of(grade("elsewhere"), measures, Fault.of("elsewhere", gap=first.value), evidence=())


def delivered(update: Update) -> Measure | None:
    """Measure the difference between sampler and reference, and collect the beginnings of completions."""
    if why := no_sampler(update):
        raise NotRecordedError(why)
    step = update.step
    away = None if step is None else away_from(step)
    if step is None or step.sampling_logp is None:
        return None
    gap, other, trained = (float("nan"),) * 3 if away is None else away
    what = tr("the sampler is {gap:.1e} nats from the reference and {other:.3g} from the trainer")
    seen = () if away is None else (update.evidence(what.format(gap=gap, other=other)),)
    more = {"other": other, "noise": noise(update), "trained": trained, "first": update.first_tokens}
    return Measure.of(update, gap, *seen, **more)


def is_reference(measure: Measure, first: Measure) -> bool:
    """Return whether the sampler has the weights of the reference, and the trainer others."""
    least = measure.more["noise"]
    return bool(measure.value <= least and min(measure.more["trained"], measure.more["other"]) > 10 * least)


def judge_delivered(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a sampler that has the weights of the reference."""
    since = [m for m in lasting(measures, is_reference) if np.isfinite(m.value)]
    if not since:
        return None
    gap, away = max(m.value for m in since), mean(since, "other")
    what = Fault.of("sampler_is_reference", since=since[0].label, gap=gap, away=away)
    return Verdict.of(grade("gradient_zero"), since, what)


def judge_sampler_still(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a sampler whose policy stays as it was while the trained one changes."""
    courses = [m.more["first"] for m in measures]
    mine, theirs = (changes(courses, which) for which in (0, 1))
    least = max(m.more["noise"] for m in measures)
    if len(measures) < limit("still_updates") or not theirs or max(theirs.values()) > least:
        return None
    change = max(mine[key] for key in theirs)
    if change <= max(10 * least, limit("sampler")):
        return None
    what = Fault.of("sampler_still", change=max(theirs.values()), moved=change)
    return Verdict.of(grade("gradient_zero"), measures, what, evidence=())
