"""Check of the age of samples: the number of training steps between the sampling policy and the trained one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.text import tr
from grpo_core.trainers.claims.measures import Stale
from grpo_core.trainers.health.check import Measure, Verdict, lasting, worst
from grpo_core.trainers.health.finding import Evidence
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update


def no_versions(update: Update) -> str:
    """Describe what would have to be recorded to determine the age of samples, or return an empty string."""
    if update.table is None:
        return update.why_no_table
    known = update.table.staleness
    if known is None or not np.isfinite(known).any():
        return tr("The version of the policy that wrote a completion is not recorded.")
    return ""


def staleness(update: Update) -> Measure | None:
    """Measure the mean age of the completions in training steps, with the oldest as evidence."""
    assert update.table is not None and update.table.staleness is not None
    ages = update.table.staleness
    known = np.flatnonzero(np.isfinite(ages))
    oldest = known[np.argsort(-ages[known], kind="stable")[:2]].tolist()
    return Measure(
        label=update.label,
        value=float(ages[known].mean()),
        more={"oldest": float(ages[known].max())},
        evidence=tuple(_evidence(update, row, float(ages[row])) for row in oldest),
    )


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
    return update.seen(what, row, token)


def is_stale(measure: Measure, first: Measure) -> bool:
    """Return whether the samples are too old."""
    return measure.value > limit("stale")


def judge_stale(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for samples of a policy that is too old."""
    since = lasting(measures, is_stale, min(2, len(measures)))
    if not since:
        return None
    what = Stale(
        since=since[0].label,
        mean=float(np.mean([m.value for m in since])),
        oldest=max(m.more["oldest"] for m in since),
    )
    return Verdict(grade=grade("stale"), what=[what], began=since[0].label, evidence=worst(since))
