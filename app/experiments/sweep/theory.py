"""The theoretical end points of a sweep's runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.experiments.sweep.plan import BETA, Sweep
from grpo_core.errors import SettingsError
from grpo_core.experiments.sweep import has_optimum, resting_beta, tilt_measures

KNOWN: dict[str, Any] = {
    "objective.surrogate": "log_prob",
    "objective.baseline": "leave_one_out",
    "objective.std": "none",
    "objective.kl": "exact",
    "objective.kl_importance": False,
    "objective.kl_in": "loss",
    "learner.mu": 1,
    "learner.critic": False,
    "learner.resample_dead": False,
    "objective.dual_clip": None,
    "objective.entropy_bonus": 0.0,
    "optimizer.weight_decay": 0.0,
    "learner.staleness": 0,
}
"""Settings under which the optimum is known: REINFORCE with a leave-one-out baseline and the exact KL."""
FINE = 12
"""Number of points of a theoretical curve per interval of the grid."""


def optimum(sweep: Sweep, row: int = 0) -> dict[str, np.ndarray]:
    """Return the optimum along the axis: "place", "kl" in nats and "reward", (n,) each.

    The result is empty if theory provides none.
    """
    places = sweep.over.places
    intervals, optima = len(places) - 1, []
    for x in np.linspace(0, intervals, intervals * (FINE if sweep.over.path == BETA else 1) + 1):
        try:
            settings = sweep.at(places.value(float(x)), row)
        except SettingsError:
            continue
        if has_optimum(settings):
            best = tilt_measures(settings, resting_beta(settings))
            optima.append((float(x), best["kl"], best["reward"]))
    columns = np.array(optima, dtype=float).reshape(-1, 3).T
    return dict(zip(("place", "kl", "reward"), columns, strict=True))
