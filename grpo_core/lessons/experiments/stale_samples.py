"""Runs whose samples come from an older policy, by how old it is: as they are, or with an importance weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from grpo_core.bandit.simulate import never
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles

AGES = (0, 2, 4, 8, 16)
"""Updates by which the policy that samples is behind."""
UPDATES, SEEDS = 150, tuple(range(512))
CAP = 1.0
"""Importance cap of the runs that are weighted."""


def planned(settings: Settings, age: int, *, weighted: bool) -> Settings:
    """The settings of runs whose sampler is ``age`` updates behind."""
    cap = CAP if weighted else None
    return settings.replace({"learner.staleness": age, "objective.importance_cap": cap})


def tried(
    settings: Settings,
    weighted: bool,
    *,
    seeds: Sequence[int] = SEEDS,
    ages: Sequence[int] = AGES,
    poll: Callable[[], None] = never,
) -> Iterator[tuple[int, Ensemble]]:
    """Train the runs of each age. Yields (age, runs), one age after the other.

    Args:
        settings: of the runs, but for staleness, importance cap and seed.
        weighted: whether samples count by their truncated importance weight, with the cap :data:`CAP`.
        seeds: of the runs of each age.
        ages: in updates.
        poll: called about once an update; whatever it raises ends the training.

    Raises:
        SettingsError: a task of several decisions, or a language model's.
    """
    for age in ages:
        yield age, next(ensembles([planned(settings, age, weighted=weighted)], seeds, UPDATES, poll=poll))


def wrong(runs: Ensemble) -> float:
    """Share of the runs that do not end with the best answer as their likeliest one."""
    return runs.stuck + float(runs.diverged.mean())
