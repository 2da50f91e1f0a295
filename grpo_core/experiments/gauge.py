"""Measures of many runs after every update."""

from __future__ import annotations

import numpy as np

from grpo_core import kl
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import runs_last_view
from grpo_core.bandit.tasks import Task

MEASURES = ("reward", "best_prob", "kl", "entropy", "alignment", "step")
"""Measures of every run after every update, averaged over the prompts.

reward: the policy's exact expected reward. best_prob: probability of the best action. kl: KL(π‖π_ref) in nats. entropy:
entropy of π in nats. alignment: cosine between the change in the logits and the exact gradient of the expected reward,
or 0 if the gradient is 0. step: Euclidean length of the change in the logits. The last two are 0 at update 0.
"""

OF_STEPS = ("alignment", "step")
"""Measures that describe the step that leads to a policy."""

AT_ONCE = 4096
"""Number of policies measured at once, small enough for the processor's cache.

It is large enough that the overhead of the calls does not matter.
"""


class Gauge:
    """Measures R runs, and the steps between their policies.

    Attributes:
        rewards: reward of every action, (C, A).
        reference: log π_ref, (R, C, A).
        measures: every measure by name, (U + 1, R).

    Args:
        work: the task, in which every action has a reward.
        logits: (R, C, A) before the first update, those of the reference.
        temperature: sampling temperature, a number or (R, 1, 1).
        updates: number of updates, U.
    """

    def __init__(self, work: Task, logits: np.ndarray, temperature: float, updates: int) -> None:
        assert work.action_rewards is not None
        self.rewards = work.action_rewards
        self._shape = runs_last_view(logits).shape  # (C, A, R)
        self.reference = policy.log_probs(logits, temperature)
        self.measures = {name: np.zeros((updates + 1, len(logits))) for name in MEASURES}
        waiting = max(1, AT_ONCE // len(logits))
        self._logp, self._change = np.empty((waiting, *self._shape)), np.empty((waiting, *self._shape))
        self._done = self._waiting = 0
        self._last = self.reference

    def read(self, logp: np.ndarray, before: np.ndarray | None = None, after: np.ndarray | None = None) -> None:
        """Measure the next log π (R, C, A), and the update that follows it.

        ``before`` and ``after`` are the logits before and after that update, or None for the last policy.
        """
        self._last = logp
        self._logp[self._waiting] = runs_last_view(logp)
        if before is None or after is None:
            self._change[self._waiting] = 0.0
        else:
            np.subtract(runs_last_view(after), runs_last_view(before), out=self._change[self._waiting])
        self._waiting += 1
        if before is None or self._waiting == len(self._logp):
            self._measure(self._logp[: self._waiting], self._change[: self._waiting])

    def _measure(self, logp: np.ndarray, change: np.ndarray) -> None:
        """Measure the policies that are queued, (N, C, A, R) in runs-last order."""
        values = measured(logp, change, self.rewards, runs_last_view(self.reference))
        count, self._waiting = len(logp), 0
        for name, kept in self.measures.items():
            first = self._done + (name in OF_STEPS)
            kept[first : first + count] = values[name][: len(kept) - first]  # nothing follows the last update
        self._done += count

    def policy(self) -> np.ndarray:
        """Return the probabilities after the last update, (R, C, A)."""
        return np.asarray(np.exp(self._last))


def measured(logp: np.ndarray, change: np.ndarray, rewards: np.ndarray, reference: np.ndarray) -> dict[str, np.ndarray]:
    """Compute the :data:`MEASURES` of N policies of R runs, and of the step that follows each, (N, R).

    Args:
        logp: log π, (N, C, A, R).
        change: change of the logits in that step, (N, C, A, R).
        rewards: reward of every action, (C, A).
        reference: log π_ref, (C, A, R).
    """
    prob = np.exp(logp)
    paid = prob * rewards[..., None]
    reward = paid.sum(axis=-2)  # (N, C, R)
    values = {
        "reward": _averaged(reward),
        "best_prob": _averaged(prob[:, np.arange(len(rewards)), rewards.argmax(axis=-1)]),
        "kl": _averaged(kl.exact(logp, reference, prob, axis=-2)),
        "entropy": _averaged(kl.entropy(logp, prob, axis=-2)),
    }
    prob *= reward[:, :, None]
    paid -= prob
    uphill = paid  # d E[R] / d z, up to the temperature
    length = np.sqrt(_inner_product(change, change))
    size = np.sqrt(_inner_product(uphill, uphill)) * length
    apart = size > 0
    cosine = np.where(apart, _inner_product(uphill, change) / np.where(apart, size, 1.0), 0.0)
    return {**values, "alignment": cosine, "step": length}


def _inner_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the sum of the products over the two middle axes, (N, C, A, R) -> (N, R)."""
    return np.asarray(np.einsum("ncar,ncar->nr", x, y))


def _averaged(by_prompt: np.ndarray) -> np.ndarray:
    """Return the mean over the prompts, (N, C, R) -> (N, R)."""
    return by_prompt[:, 0] if by_prompt.shape[1] == 1 else np.asarray(by_prompt.mean(axis=1))
