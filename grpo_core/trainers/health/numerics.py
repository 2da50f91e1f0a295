"""Checks of the numbers themselves: whether they are finite, whether programs agree on them, the age of samples."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.recompute import USUAL_CAP
from grpo_core.text import tr
from grpo_core.trainers.claims.faults import PLACES, Fault
from grpo_core.trainers.claims.measures import FACTOR
from grpo_core.trainers.concepts import names_of
from grpo_core.trainers.health.check import Measure, Verdict, against, lasting, mean, worst
from grpo_core.trainers.health.finding import Evidence
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update

SAME_PROGRAM = tr("The program that trains also sampled: the two differ only by what was learned in between.")


is_stale = against("stale", operator.gt)


def non_finite(update: Update) -> Measure:
    """Count the non-finite numbers, with the first ones as evidence."""
    found = list(_not_finite(update))
    more = {"first": found[0][1:]} if found else {}
    return Measure.of(update, float(len(found)), *(seen for seen, _, _ in found[:3]), **more)


def _not_finite(update: Update) -> Iterator[tuple[Evidence, str, dict[str, Any]]]:
    """Yield non-finite numbers in causal order: rewards, advantages, log-probabilities, loss.

    Each comes with its kind, a key of ``PLACES``, and the values for the sentence. A reward of NaN is an unscored
    completion, and a sampler's NaN is an unscored token; neither is a fault.
    """
    table, step = update.table, update.step
    if table is not None:
        parts = table.rewards[:, None] if table.reward_parts is None else table.reward_parts
        names = table.reward_names or (tr("reward"),) * parts.shape[1]
        for row, k in np.argwhere(np.isinf(parts))[:3]:
            yield _bad(update, "reward", parts[row, k], int(row), name=names[k])
        if table.advantage is not None:
            scored = ~np.isnan(table.rewards)
            unknown = np.isinf(table.advantage)
            if step is not None and step.settings.recorded.names_loss:
                unknown = np.isnan(table.advantage) & scored & (step.part >= 0).any(axis=0)
            for row in np.flatnonzero(unknown)[:3]:
                yield _bad(update, "advantage", table.advantage[row], int(row))
    if step is not None:
        for n in range(step.passes):
            yield from _bad_tokens(update, "logp", step.logp[n], update.used(n), number=n + 1)
        yield from _bad_tokens(update, "old_logp", step.old_logp, update.used(0))
        if step.ref_logp is not None:
            yield from _bad_tokens(update, "ref_logp", step.ref_logp, step.mask)
    for report in update.reports:
        for name in (name for concept in ("loss", "grad_norm") for name in names_of(concept, report.numbers)):
            if not np.isfinite(value := report.numbers[name]):
                yield _bad(update, "report", value, name=name)


def _bad_tokens(
    update: Update, place: str, values: np.ndarray, used: np.ndarray, **facts: Any
) -> Iterator[tuple[Evidence, str, dict[str, Any]]]:
    for row, token in np.argwhere(~np.isfinite(values) & used)[:1]:
        yield _bad(update, place, values[row, token], int(row), int(token), **facts)


def _bad(
    update: Update, place: str, value: float, row: int | None = None, token: int | None = None, **facts: Any
) -> tuple[Evidence, str, dict[str, Any]]:
    facts["value"] = float(value)
    return update.evidence(PLACES[place].format(**facts), row, token), place, facts


def judge_non_finite(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for non-finite numbers, which affect all later numbers."""
    those = [m for m in measures if m.value]
    if not those:
        return None
    first = those[0]
    place, facts = first.more["first"]
    what = Fault.of(f"not_finite:{place}", count=len(those), all=len(measures), label=first.label, **facts)
    advice = ("mend_start",) if measures[0].value else ()
    return Verdict.of(Grade.SERIOUS, those, what, evidence=first.evidence, advice=advice)


def first_pass(update: Update) -> Measure | None:
    """Measure the mean difference between old and new log-probabilities in the first pass, before any learning."""
    step, used = update.tokens, update.used(0)
    if not used.any() or np.array_equal(step.old_logp[used], step.logp[0][used], equal_nan=True):
        raise NotRecordedError(
            tr("The old log-probabilities are those of the first pass itself; they were not scored separately.")
        )
    both = used & np.isfinite(step.logp[0]) & np.isfinite(step.old_logp)
    if not both.any():
        return None
    gap = float(np.abs(step.logp[0][both].astype(np.float64) - step.old_logp[both]).mean())
    coarse = noise(update) > limit("noise_single")
    evidence = _far_places(update, np.where(used, step.logp[0] - step.old_logp, 0.0))
    return Measure.of(
        update, gap, *evidence, limit=limit("first_pass_half" if coarse else "first_pass_single"), noise=noise(update)
    )


def is_apart(measure: Measure, first: Measure) -> bool:
    return bool(measure.value > measure.more["limit"])


def judge_first_pass(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a first pass that is not on-policy."""
    since = lasting(measures, is_apart)
    if not since:
        return None
    what = Fault.of("first_pass_apart", since=since[0].label, gap=mean(since), noise=since[0].more["noise"])
    return Verdict.of(grade("first_pass_single"), since, what)


def no_sampler(update: Update) -> str:
    table, scored = update.table, update.step is not None and update.step.sampling_logp is not None
    if (
        table is not None
        and table.sampled_by_trainer
        and (table.staleness is None or table.staleness.all() or not scored)
    ):
        return SAME_PROGRAM
    if scored:
        return ""
    trainer = update.settings.recorded.trainer_values
    if trainer.get("use_vllm") is False and not trainer.get("rollout_func"):
        return SAME_PROGRAM
    if table is not None and table.sampling_logp is not None and table.training_logp is not None:
        return ""
    if update.step is None and update.why_no_step and (table is None or table.sampling_logp is None):
        return tr("Neither the sampler's nor the trainer's log-probabilities are recorded.")
    return tr("The log-probabilities of the sampler, or those of the trainer, are not recorded.")


def sampler(update: Update) -> Measure | None:
    """Measure the mean difference between the log-probabilities of tokens scored by sampler and trainer."""
    if why := no_sampler(update):
        raise NotRecordedError(why)
    step, table = update.step, update.table
    if step is not None and step.sampling_logp is not None:
        differences = recompute.from_sampler(step)
        assert differences is not None
        evidence = _far_places(update, differences, recompute.importance_weights(step))
        flat = differences[recompute.scored_by_sampler(step)]
    else:
        assert table is not None and table.sampling_logp is not None and table.training_logp is not None
        flat = np.concatenate([t - s for t, s in zip(table.training_logp, table.sampling_logp, strict=True)])
        flat = flat[np.isfinite(flat)]
        evidence = ()
    if not len(flat):
        return None
    more = {
        "far": float((np.abs(flat) > np.log(FACTOR)).mean()),
        "cut": float((flat > np.log(USUAL_CAP)).mean()),
        "divergence": float((np.expm1(flat) - flat).mean()),
    }
    return Measure.of(update, float(np.abs(flat).mean()), *evidence, **more)


def is_far(measure: Measure, first: Measure) -> bool:
    return bool(measure.value > limit("sampler") or measure.more["far"] > limit("sampler_far"))


def judge_sampler(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a sampler whose policy differs from the trained one."""
    since = lasting(measures, is_far)
    if not since:
        return None
    first = since[0].label
    what = Fault.of("sampler_apart", since=first, gap=mean(since), far=mean(since, "far"))
    weights = Fault.of("importance_cut", since=first, divergence=mean(since, "divergence"), cut=mean(since, "cut"))
    evidence = worst(since) or [
        Evidence(step=m.label, what=tr("mean difference {gap:.3g} nats").format(gap=m.value)) for m in since[:5]
    ]
    return Verdict.of(grade("sampler"), since, what, weights, evidence=evidence)


def _far_places(update: Update, differences: np.ndarray, weights: np.ndarray | None = None) -> tuple[Evidence, ...]:
    """Return the two tokens with the largest differences as evidence.

    The evidence includes their importance ``weights`` (B, T), if given.
    """
    sizes, found = np.where(np.isfinite(differences), np.abs(differences), 0.0), []
    for place in np.argsort(-sizes, axis=None)[:2]:
        row, token = (int(index) for index in np.unravel_index(place, sizes.shape))
        facts = {"token": update.token(row, token), "gap": float(differences[row, token])}
        what = tr("token {token} differs by {gap:.3g} nats").format(**facts)
        if weights is not None:
            what = tr("token {token} differs by {gap:.3g} nats, importance weight {weight:.3g}").format(
                **facts, weight=float(weights[row, token])
            )
        found += [update.evidence(what, row, token)] if sizes[row, token] > 0 else []
    return tuple(found)


def noise(update: Update) -> float:
    """Return what rounding explains of a difference of log-probabilities, in nats, by settings or digits."""
    trainer, values = update.settings.recorded.trainer_values, update.tokens.logp[0][update.used(0)]
    half = trainer.get("bf16") or trainer.get("fp16") or _like_half(values)
    return limit("noise_half" if half else "noise_single")


def _like_half(values: np.ndarray) -> bool:
    """Return whether all numbers are precise to no more digits than bfloat16 or float16 can hold."""
    single = np.ascontiguousarray(values[np.isfinite(values)], np.float32)
    return len(single) > 0 and not bool((single.view(np.uint32) & 0x1FFF).any())


def staleness(update: Update) -> Measure | None:
    """Measure the mean age of the completions in training steps, with the oldest as evidence."""
    ages = update.completions.staleness
    if ages is None or not np.isfinite(ages).any():
        raise NotRecordedError(tr("The version of the policy that wrote a completion is not recorded."))
    known = np.flatnonzero(np.isfinite(ages))
    oldest = known[np.argsort(-ages[known], kind="stable")[:2]].tolist()
    seen = (_evidence(update, row, float(ages[row])) for row in oldest)
    return Measure.of(update, float(ages[known].mean()), *seen, oldest=float(ages[known].max()))


def _evidence(update: Update, row: int, age: float) -> Evidence:
    """Return evidence of an old completion.

    It includes the token with the largest difference between sampler and trainer, if both are recorded.
    """
    what = tr("its policy is {age:g} steps old").format(age=age)
    away = None if update.step is None else recompute.from_sampler(update.step)
    token = None
    if away is not None and away[row].any():
        token = int(np.abs(away[row]).argmax())
        what = tr("its policy is {age:g} steps old; token {token} differs by {gap:.3g} nats").format(
            age=age, token=update.token(row, token), gap=float(away[row, token])
        )
    return update.evidence(what, row, token)


def judge_stale(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for samples of a policy that is too old."""
    since = lasting(measures, is_stale)
    if not since:
        return None
    oldest = max(m.more["oldest"] for m in since)
    return Verdict.of(grade("stale"), since, Fault.of("stale", since=since[0].label, mean=mean(since), oldest=oldest))
