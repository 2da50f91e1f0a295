"""Runs with samples from policies of different ages, unweighted or with an importance weight."""

from __future__ import annotations

from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble

AGES = (0, 2, 4, 8, 16)
"""Numbers of updates by which the sampling policy is behind."""
UPDATES, SEEDS = 150, 512
CAP = 1.0
"""Importance weight cap of the weighted runs."""


def planned(settings: Settings, age: int, *, weighted: bool) -> Settings:
    """Return the settings of runs whose sampler is ``age`` updates behind."""
    cap = CAP if weighted else None
    return settings.replace({"learner.staleness": age, "objective.importance_cap": cap})


def wrong(runs: Ensemble) -> float:
    """Return the share of the runs that diverged or whose most likely action at the end is not the best one."""
    return runs.stuck + float(runs.diverged.mean())
