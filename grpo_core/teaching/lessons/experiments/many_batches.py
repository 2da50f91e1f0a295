"""Distribution of an action's advantage over many groups drawn from one policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grpo_core.advantages import advantages
from grpo_core.bandit.layout import runs_last
from grpo_core.bandit.simulate import draw
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.errors import ShapeError
from grpo_core.experiments.ensemble import action_rewards
from grpo_core.progress import unpolled

BINS = 41
"""Number of histogram bars, which is odd so that one bar is centered on 0."""
ROUNDING = 1e-9
"""Absolute value below which an advantage is 0 up to rounding: the reward then equals its group's mean."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batches:
    """N groups of G samples each.

    Attributes:
        actions: (N, G) integer.
        rewards, advantage: (N, G).
        action_rewards: (A,).
        expected: expected reward of the policy.
    """

    actions: np.ndarray
    rewards: np.ndarray
    advantage: np.ndarray
    action_rewards: np.ndarray
    expected: float


class OfAction:
    """The samples of one action in many groups.

    Attributes:
        action: the action, counted from 0.
        batch, place: (n,) integer, group and position of each sample.
        advantage: (n,).
    """

    def __init__(self, batches: Batches, action: int) -> None:
        self.batches, self.action = batches, action
        self.batch, self.place = np.nonzero(batches.actions == action)
        self.advantage = batches.advantage[self.batch, self.place]

    @cached_property
    def edges(self) -> np.ndarray:
        """Edges of the histogram's bars, symmetric around 0, (:data:`BINS` + 1,)."""
        widest = float(np.abs(self.batches.advantage).max(initial=0.0))
        return np.linspace(-1, 1, BINS + 1) * (widest * 1.0001 if widest > 0 else 1.0)

    @cached_property
    def bar(self) -> np.ndarray:
        """Index of the bar that contains each sample, (n,) integer."""
        return np.clip(np.searchsorted(self.edges, self.advantage, side="right") - 1, 0, BINS - 1)

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of samples in each bar, (:data:`BINS`,)."""
        return np.bincount(self.bar, minlength=BINS)

    def behind(self, bar: int | np.integer) -> np.ndarray:
        """Return the samples in a bar, as indices into :attr:`batch`."""
        return np.flatnonzero(self.bar == bar)

    def _share(self, which: np.ndarray) -> float:
        return float(which.mean()) if len(which) else float("nan")

    def answers(self) -> dict[str, Callable[[], float]]:
        """Return the numbers that predictions are compared with, by name."""
        return {
            "punished": lambda: self._share(self.advantage < -ROUNDING),
            "praised": lambda: self._share(self.advantage > ROUNDING),
            "silent": lambda: self._share(np.abs(self.advantage) <= ROUNDING),
            "mean_advantage": lambda: float(self.advantage.mean()) if len(self.advantage) else float("nan"),
            "above": lambda: float(self.batches.action_rewards[self.action] - self.batches.expected),
            "samples": lambda: float(len(self.advantage)),
            "values": lambda: float(len(np.unique(np.round(self.advantage, 9)))),
        }


class _OneUpdate(Streams):
    """Random streams for a single update, which do not draw the numbers for any later update."""

    def uniforms(self, step: int, count: int) -> np.ndarray:
        return runs_last(self.again(step, count, 0, np.arange(self.runs)))


def many_batches(settings: Settings, logp: np.ndarray, count: int, seed: int) -> Batches:
    """Draw ``count`` groups for the first prompt and compute their advantages as in training.

    Args:
        settings: task with one decision, group size, baseline and division by the standard deviation.
        logp: log π (C, A) of the sampling policy.
        count: number of groups, N.
        seed: group n uses the random stream of ``seed`` + n.

    Raises:
        SettingsError: an action of this task does not have a fixed reward, or the baseline would have to be supplied.
        ShapeError: the policy has other actions than the task.
    """
    work, paid = task(settings.bandit), action_rewards(settings)
    if logp.shape != paid.shape:
        raise ShapeError("logp", logp.shape, str(paid.shape))
    streams = _OneUpdate(range(seed, seed + count))
    dist = runs_last(np.broadcast_to(logp, (streams.runs, *logp.shape)))
    drawn = draw(settings.learner, work, np.exp(dist), 1, streams, unpolled)
    size = settings.learner.group_size
    grouped = (streams.runs, -1, size)
    rewards = drawn.rewards.reshape(grouped)
    alone = settings.objective.replace(kl_in="loss")
    table = paid[0]
    return Batches(
        actions=drawn.completions.tokens[..., 0].reshape(grouped)[:count, 0],
        rewards=rewards[:count, 0],
        advantage=np.asarray(advantages(alone, rewards))[:count, 0],
        action_rewards=table,
        expected=float(np.exp(logp[0]) @ table),
    )


_NONE = np.zeros((0, 1))
_NO_BATCHES = Batches(actions=_NONE, rewards=_NONE, advantage=_NONE, action_rewards=_NONE, expected=0.0)
BATCH_ANSWERS = tuple(OfAction(_NO_BATCHES, 0).answers())
"""Names of the numbers in :meth:`OfAction.answers`."""
