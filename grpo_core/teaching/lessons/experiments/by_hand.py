"""Policies set by hand: one probability is dragged, the other actions share the rest, and all ratios are updated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from grpo_core import objective as loss
from grpo_core.bandit.tabular_policy import log_probs
from grpo_core.config import Objective
from grpo_core.errors import SettingsError
from grpo_core.objective import Terms
from grpo_core.text import tr

LEAST = 1e-4
"""Minimum probability that can be set by hand, and minimum probability left for the other actions."""
FLOOR = 1e-9
"""Minimum probability of an action, even if it is reduced again and again, so that no ratio overflows."""


def from_weights(weights: Sequence[float]) -> np.ndarray:
    """Return log π (A,), in nats, of a policy proportional to ``weights``.

    Raises:
        SettingsError: there are fewer than two weights, or one is not a positive number or is negligible next to the
            sum.
    """
    given = np.asarray(weights, dtype=float)
    if given.ndim != 1 or len(given) < 2 or not (np.isfinite(given) & (given > 0)).all():
        raise SettingsError("probabilities", tuple(weights), tr("give two or more numbers above 0"))
    if given.max() > given.min() / FLOOR:
        raise SettingsError(
            "probabilities", tuple(weights), tr("none can be less than {floor:g} of another").format(floor=FLOOR)
        )
    return np.asarray(log_probs(np.log(given), 1.0))


def with_probability(logp: np.ndarray, action: int, prob: float) -> np.ndarray:
    """Return log π (A,) with ``action`` at probability ``prob``. The other actions share the rest in proportion.

    ``prob`` is clamped to [:data:`LEAST`, 1 − :data:`LEAST`].
    """
    limited = min(max(float(prob), LEAST), 1 - LEAST)
    moved = logp.copy()
    moved[action] = -np.inf
    moved = moved - np.logaddexp.reduce(moved) + np.log1p(-limited)
    moved[action] = np.log(limited)
    return np.asarray(log_probs(np.maximum(moved, np.log(FLOOR)), 1.0))


def ratio_terms(objective: Objective, logp: np.ndarray, old_logp: np.ndarray, advantage: float) -> Terms:
    """Return the terms of the loss for every action, (A, 1) each, as if each had been sampled once with ``advantage``.

    ``logp`` and ``old_logp`` have shape (A,). The KL and the entropy bonus are left out.
    """
    alone = objective.replace(beta=0.0, entropy_bonus=0.0)
    each = np.full(len(logp), float(advantage))
    return loss.evaluate(alone, logp[:, None], old_logp[:, None], each, np.ones((len(logp), 1), dtype=bool))


def ratio_of_each(objective: Objective, old_logp: np.ndarray, gain: float) -> np.ndarray:
    """Return the ratio of each action when it alone gains the probability ``gain``, or as much as there is, (A,)."""
    prob = np.exp(old_logp)
    moved = [with_probability(old_logp, action, float(prob[action]) + gain) for action in range(len(prob))]
    return np.array([ratio_terms(objective, logp, old_logp, 1.0).ratio[action, 0] for action, logp in enumerate(moved)])


class Ratios:
    """An old policy, the policy set by hand from it, and all ratios between the two.

    Attributes:
        old_logp, logp: log π_old and log π, (A,).
        action: the action whose probability was changed.
        gain: the probability that each action gains separately in :attr:`alone`.
    """

    def __init__(self, objective: Objective, old_logp: np.ndarray, logp: np.ndarray, action: int, gain: float) -> None:
        self.objective, self.old_logp, self.logp, self.action, self.gain = objective, old_logp, logp, action, gain

    @cached_property
    def ratio(self) -> np.ndarray:
        """The ratios π / π_old, (A,)."""
        return np.asarray(ratio_terms(self.objective, self.logp, self.old_logp, 1.0).ratio[:, 0])

    @cached_property
    def alone(self) -> np.ndarray:
        """The ratio of each action when that action alone gains ``gain``, (A,)."""
        return ratio_of_each(self.objective, self.old_logp, self.gain)

    @property
    def bounds(self) -> tuple[float, float]:
        """The clipping bounds 1 − ε and 1 + ε⁺."""
        return 1 - float(self.objective.clip_low), 1 + float(self.objective.clip_high)

    def outside(self, ratio: np.ndarray) -> int:
        low, high = self.bounds
        return int(((ratio < low) | (ratio > high)).sum())

    def answers(self) -> dict[str, Callable[[], float]]:
        """Return the numbers that predictions are compared with, by name."""
        rarest, likeliest = int(self.old_logp.argmin()), int(self.old_logp.argmax())
        return {
            "moved_ratio": lambda: float(self.ratio[self.action]),
            "others_spread": lambda: float(np.ptp(np.delete(self.ratio, self.action))),
            "others_ratio": lambda: float(np.delete(self.ratio, self.action).mean()),
            "mean_ratio": lambda: float(np.exp(self.old_logp) @ self.ratio),
            "outside": lambda: float(self.outside(self.ratio)),
            "rare_over_likely": lambda: float(self.alone[rarest] / self.alone[likeliest]),
            "alone_outside": lambda: float(self.outside(self.alone)),
            "alone_largest": lambda: float(self.alone.max()),
            "likeliest_limit": lambda: float(ratio_of_each(self.objective, self.old_logp, 1.0)[likeliest]),
        }


RATIO_ANSWERS = tuple(Ratios(Objective(), np.zeros(1), np.zeros(1), 0, 0.0).answers())
"""Names of the numbers in :meth:`Ratios.answers`."""
