"""Comparison of group sizes with the same seeds: at equal updates, at equal samples, or with a scaled learning rate."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.teaching.lessons.experiments.by_hand import expected_step

SIZES = (2, 4, 8, 16, 32, 64)
KINDS = ("updates", "samples", "scaled")
"""What is equal for all group sizes: the number of updates or the number of samples.

"scaled" means equal samples with a learning rate proportional to G.
"""
UPDATES, SAMPLES = 40, 512
SEEDS = 64
"""Number of runs of each size in the lesson."""
RATED_AT = 8
"""Group size at which the scaled learning rate equals that of the settings."""


def planned(settings: Settings, kind: str, size: int) -> tuple[Settings, int]:
    """Return the settings and the number of updates of runs with groups of ``size``. ``kind``: one of :data:`KINDS`."""
    own = settings.replace({"learner.group_size": size})
    if kind == "scaled":
        rate = settings.optimizer.learning_rate * size / RATED_AT
        own = own.replace({"optimizer.learning_rate": rate})
    return own, UPDATES if kind == "updates" else SAMPLES // size


def last_rewards(runs: Ensemble) -> np.ndarray:
    """Return the expected reward of every seed's last policy, (S,)."""
    return np.asarray(runs.measures["reward"][-1])


def middle(runs: Ensemble) -> float:
    """Return the median of the final expected rewards over the seeds."""
    return float(np.median(last_rewards(runs)))


def silent(runs: Ensemble) -> float:
    """Return the share of the seeds whose first update changed nothing."""
    return float((runs.measures["step"][1] == 0).mean())


def gain(runs: dict[int, Ensemble]) -> float:
    """Return the mean final reward of the largest size minus that of the smallest. NaN while one of them is missing."""
    if SIZES[0] not in runs or SIZES[-1] not in runs:
        return float("nan")
    return float(last_rewards(runs[SIZES[-1]]).mean() - last_rewards(runs[SIZES[0]]).mean())


@lru_cache(maxsize=1)
def left_by_own_mean(sizes: tuple[int, ...]) -> np.ndarray:
    """Return the length of the expected step with the group mean as baseline, relative to leave-one-out, (n,).

    All groups that three actions can form are included. Advantages are not divided by the standard deviation.
    """
    logits = np.array([0.3, -0.2, 0.5])
    plain = Settings().replace(
        {
            "task.landscape": "custom",
            "task.actions": 3,
            "task.custom": (0.1, 0.9, 0.4),
            "objective.beta": 0.0,
            "objective.std": "none",
            "learner.mu": 1,
        }
    )

    def length(size: int, baseline: str) -> float:
        asked = plain.replace({"learner.group_size": size, "objective.baseline": baseline})
        return float(np.linalg.norm(expected_step(asked, logits)))

    return np.array([length(size, "group_mean") / length(size, "leave_one_out") for size in sizes])
