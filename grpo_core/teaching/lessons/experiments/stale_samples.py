"""Runs with samples from policies of different ages, unweighted or with an importance weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from grpo_core.bandit.simulate import never
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles

AGES = (0, 2, 4, 8, 16)
"""Numbers of updates by which the sampling policy is behind."""
UPDATES, SEEDS = 150, 512
CAP = 1.0
"""Importance weight cap of the weighted runs."""


def planned(settings: Settings, age: int, *, weighted: bool) -> Settings:
    """Return the settings of runs whose sampler is ``age`` updates behind."""
    cap = CAP if weighted else None
    return settings.replace({"learner.staleness": age, "objective.importance_cap": cap})


def tried(
    settings: Settings, weighted: bool, seeds: Sequence[int], *, poll: Callable[[], None] = never
) -> Iterator[tuple[int, Ensemble]]:
    """Train the runs of each age, and yield (age, runs) for one age at a time.

    Args:
        settings: settings of the runs, except for seed, staleness and importance cap.
        weighted: whether samples are weighted by their truncated importance weight, with the cap :data:`CAP`.
        seeds: seeds of the runs of each age.
        poll: called about once per update; an exception raised by it ends the training.

    Raises:
        SettingsError: the task has several decisions or is that of a language model.
    """
    for age in AGES:
        yield age, next(ensembles([planned(settings, age, weighted=weighted)], seeds, UPDATES, poll=poll))


def wrong(runs: Ensemble) -> float:
    """Return the share of the runs that diverged or whose most likely action at the end is not the best one."""
    return runs.stuck + float(runs.diverged.mean())
