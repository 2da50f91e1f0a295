"""Checks of numbers that the trainer logged, for runs without the completions or tokens from which they follow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.levels import LEVELS
from grpo_core.text import tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.concepts import CONCEPTS, clipped_share
from grpo_core.trainers.flow import ZERO
from grpo_core.trainers.health.check import Measure, Verdict, against, lasting, mean
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.groups import rises
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update

RECORDED = tr("It is computed from what is recorded of the completions.")


def _measure(update: Update, value: float | None, concept: str, **more: float | None) -> Measure | None:
    if value is None or not np.isfinite(value) or not (0 <= value <= 1 or concept == "sampler_gap"):  # else a share
        return None
    what = tr("{title}: {value:.3g}").format(title=CONCEPTS[concept].title, value=value)
    return Measure.of(update, value, update.evidence(what), **more)


def groups(update: Update) -> Measure | None:
    """Measure the logged share of groups with equal rewards, or whether the logged spread of the rewards is 0."""
    if update.table is not None:
        raise NotRecordedError(RECORDED)
    share, spread = update.logged("dead_groups"), update.logged("reward_std")
    if share is None and spread is None:
        raise NotRecordedError(tr("The share of groups with equal rewards (frac_reward_zero_std) is not logged."))
    if share is None and spread is not None:  # at least
        return _measure(update, float(spread <= ZERO), "dead_groups", spread=spread, mean=update.logged("reward"))
    return _measure(update, share, "dead_groups", spread=None, mean=update.logged("reward"))


def judge_groups(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for many groups with equal rewards."""
    since = lasting(measures, against("dead"))
    if not since:
        return None
    of_spread = [m for m in since if m.more["spread"] is not None]
    first = since[0].label
    if of_spread:
        what = Fault.of("dead_all_logged", since=first, count=int(sum(m.value for m in of_spread)), all=len(of_spread))
    else:
        what = Fault.of("dead_logged", since=first, share=mean(since))
    return Verdict.of(_grade(measures, since), since, what)


def _grade(measures: Sequence[Measure], since: Sequence[Measure]) -> Grade:
    """Return the grade of many dead groups: a notice where they may be solved, or where enough others teach."""
    means = [m.more["mean"] for m in measures]
    live = 1 - mean(since)
    if rises(means) or (live >= limit("sparse_live") and len(measures) < limit("sparse_updates")):
        return grade("sparse_live")
    return grade("sparse_updates" if live >= limit("sparse_live") else "dead")


def clips(update: Update) -> Measure | None:
    if update.step is not None:
        raise NotRecordedError(RECORDED)
    if (share := clipped_share(update.logged)) is None:
        raise NotRecordedError(tr("The share of clipped tokens is not logged."))
    return _measure(update, share, "clipped")


def judge_clips(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for steps in which most tokens are clipped. Unless the settings say so, the ratio may be of completions."""
    of_tokens = settings.recorded.names_loss and not LEVELS[settings.objective.level].of_completion
    names = ("clipped" if of_tokens else "clipped_completions", "clipped_many")
    spans = ((name, lasting(measures, against(name))) for name in names)
    name, since = next(((name, span) for name, span in spans if span), ("", []))
    if not since:
        return None
    what = Fault.of("clip_logged", since=since[0].label, share=max(m.value for m in since))
    return Verdict.of(grade(name), since, what)


def gap(update: Update) -> Measure | None:
    table, step = update.table, update.step
    if (step is not None and step.sampling_logp is not None) or (table is not None and table.sampling_logp is not None):
        raise NotRecordedError(RECORDED)
    if (known := update.logged("sampler_gap")) is None:
        raise NotRecordedError(tr("Their difference is not logged."))
    return _measure(update, known, "sampler_gap")


def judge_gap(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a sampler whose policy differs from the trained one."""
    since = lasting(measures, against("sampler"))
    if not since:
        return None
    return Verdict.of(grade("sampler"), since, Fault.of("sampler_logged", since=since[0].label, gap=mean(since)))
