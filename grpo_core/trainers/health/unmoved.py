"""Check for a policy that training does not change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core.config import Settings
from grpo_core.text import tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.health.check import Measure, Verdict, worst
from grpo_core.trainers.health.finding import Evidence
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.rewards import no_advantage
from grpo_core.trainers.health.update import Update


def not_scored_after(update: Update) -> str:
    """Return why the change of the policy in an update is unknown. Empty if it is known."""
    if update.step is None:
        return update.why_no_step
    if not update.step.scored_after:
        return tr("The completions were not scored again after the update.")
    return no_advantage(update)


def change(update: Update) -> Measure | None:
    """Measure the largest change of a sampled token's log-probability in an update that has an advantage."""
    step, table = update.step, update.table
    assert step is not None and table is not None and table.advantage is not None
    changes = np.abs(step.logp[-1] - step.logp[0])[step.mask]
    changes = changes[np.isfinite(changes)]
    if not np.nan_to_num(table.advantage).any() or not len(changes):
        return None
    most = float(changes.max())
    seen = Evidence(step=update.label, what=tr("the largest change is {change:.3g} nats").format(change=most))
    return Measure(label=update.label, value=most, evidence=(seen,))


def judge_unmoved(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for updates that have advantages and yet change nothing."""
    if len(measures) < limit("updates") or any(m.value > limit("unmoved") for m in measures):
        return None
    what = Fault.of("unmoved", count=len(measures))
    return Verdict(grade=grade("unmoved"), what=[what], began=measures[0].label, evidence=worst(measures))
