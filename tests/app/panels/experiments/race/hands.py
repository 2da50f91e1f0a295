"""A small race of bandits, computed without a window."""

from __future__ import annotations

from app.experiments.race.plan import RacePlan, base_of
from app.experiments.race.results import RaceResults
from app.jobs.jobs import Jobs
from grpo_core.config import Settings
from grpo_core.progress import unpolled

GRPO, BASELINE = "GRPO (DeepSeekMath)", "REINFORCE + baseline"

ALIKE = Settings().replace({"objective.beta": 0.0, "learner.mu": 1})


def raced(settings: Settings = ALIKE, **choices: object) -> RaceResults:
    """Compute a small race."""
    plan = RacePlan(base=base_of(settings), **{"seeds": 4, "updates": 12, **choices})  # type: ignore[arg-type]
    results = RaceResults(plan)
    for digest in plan.digests(Jobs(), unpolled):
        results.take(digest)
    return results
