"""Policies that a hand sets: one probability dragged, the others give way; and what then happens to every ratio."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core import objective as loss
from grpo_core.bandit.policy import log_probs
from grpo_core.config import Objective
from grpo_core.errors import SettingsError
from grpo_core.objective import Terms

LEAST = 1e-4
"""The smallest probability that a hand can set, and what it leaves to the others at least."""
FLOOR = 1e-9
"""What gives way again and again stops here, far from where a ratio would overflow."""


def from_weights(weights: Sequence[float]) -> np.ndarray:
    """log π of a policy proportional to ``weights``, (A,), in nats.

    Raises:
        SettingsError: fewer than two weights, or one that is not a number above 0 or a vanishing part of them all.
    """
    given = np.asarray(weights, dtype=float)
    if given.ndim != 1 or len(given) < 2 or not (np.isfinite(given) & (given > 0)).all():
        raise SettingsError("probabilities", tuple(weights), "allowed are two or more numbers above 0")
    if given.max() > given.min() / FLOOR:
        raise SettingsError("probabilities", tuple(weights), f"none may be below {FLOOR:g} of another")
    return log_probs(np.log(given), 1.0)


def with_probability(logp: np.ndarray, action: int, prob: float) -> np.ndarray:
    """log π (A,) with ``action`` at probability ``prob``; the others keep their proportions and share the rest.

    ``prob`` is held within [:data:`LEAST`, 1 − :data:`LEAST`].
    """
    held = min(max(float(prob), LEAST), 1 - LEAST)
    moved = logp.copy()
    moved[action] = -np.inf
    moved = moved - np.logaddexp.reduce(moved) + np.log1p(-held)
    moved[action] = np.log(held)
    return log_probs(np.maximum(moved, np.log(FLOOR)), 1.0)


def ratio_terms(objective: Objective, logp: np.ndarray, old_logp: np.ndarray, advantage: float) -> Terms:
    """The loss's own terms of every action, as if each had been sampled once with the same advantage; (A, 1) each.

    ``logp``, ``old_logp``: (A,). The KL is left out.
    """
    alone = objective.replace(beta=0.0, entropy_bonus=0.0)
    each = np.full(len(logp), float(advantage))
    return loss.evaluate(alone, logp[:, None], old_logp[:, None], each, np.ones((len(logp), 1), dtype=bool))
