"""A check of the diagnosis: rewards that are negative on average from some update on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.claims.claim import Claim
from grpo_core.config import Settings
from grpo_core.trainers.claims.findings import Run
from grpo_core.trainers.health.check import Check, Measure, Verdict
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.update import Update


@dataclass(frozen=True, kw_only=True)
class NegativeRewards(Claim[Run]):
    """Claims that the mean reward is negative in ``count`` of ``every`` updates."""

    count: int
    every: int

    def check(self, data: Run) -> bool:
        """Count again, from the rewards as recorded."""
        return (self.count, self.every) == (sum(bool(np.nanmean(one.rewards) < 0) for one in data), len(data))

    def words(self) -> str:
        """Return the claim as a sentence."""
        return f"The mean reward is negative in {self.count} of {self.every} updates."


def missing(update: Update) -> str:
    """Return why an update cannot be measured."""
    return update.why_no_table


def measure(update: Update) -> Measure | None:
    """Return the mean reward of an update."""
    assert update.table is not None
    return Measure(label=update.label, value=float(np.nanmean(update.table.rewards)))


def judge(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Return a notice if the mean is negative in at least half of the updates."""
    bad = [one for one in measures if one.value < 0]
    if 2 * len(bad) < len(measures) or not bad:
        return None
    what = NegativeRewards(count=len(bad), every=len(measures))
    return Verdict(what=(what,), began=bad[0].label, evidence=(), grade=Grade.NOTICE)


CHECK = Check(
    title="Rewards below zero",
    missing=missing,
    measure=measure,
    judge=judge,
    quantity=None,
    change="Look for a penalty that every completion gets.",
    source="example-part",
)
