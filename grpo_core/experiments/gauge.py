"""What is measured of many runs after every update."""

from __future__ import annotations

import numpy as np

from grpo_core import kl
from grpo_core.bandit import policy
from grpo_core.bandit.tasks import Task

MEASURES = ("reward", "best_prob", "kl", "entropy", "alignment", "step")
"""What is known of every run after every update; averages over the prompts.

reward: the policy's exact expected reward. best_prob: probability of the best action. kl: KL(π‖π_ref) and entropy: of
π, in nats. alignment: cosine between the logits' change and the exact gradient of the expected reward, 0 where there
is none; step: that change's Euclidean length; both 0 at update 0.
"""


class Gauge:
    """Reads R runs, and the step that leads from one policy to the next.

    Args:
        work: the task; its actions have a reward of their own.
        logits: (R, C, A) before the first update, those of the reference.
        temperature: of sampling, a number or (R, 1, 1).
        updates: U.
    """

    def __init__(self, work: Task, logits: np.ndarray, temperature: float, updates: int) -> None:
        assert work.action_rewards is not None
        self._rewards = work.action_rewards  # (C, A)
        self._places = np.arange(len(self._rewards)), self._rewards.argmax(axis=-1)
        self._reference = policy.log_probs(logits, temperature)
        self._told = {name: np.zeros((updates + 1, len(logits))) for name in MEASURES}
        self._last = np.zeros(0)

    def read(self, number: int, logp: np.ndarray, change: np.ndarray | None) -> None:
        """Measure log π (R, C, A) after update ``number``, and the logits' ``change`` in the update that follows."""
        told = self._told
        prob = np.exp(logp)
        paid = prob * self._rewards
        reward = paid.sum(axis=-1)  # (R, C)
        told["reward"][number] = reward.mean(axis=-1)
        told["best_prob"][number] = prob[:, self._places[0], self._places[1]].mean(axis=-1)
        told["kl"][number] = kl.exact(logp, self._reference, prob).mean(axis=-1)
        told["entropy"][number] = kl.entropy(logp, prob).mean(axis=-1)
        if change is None:
            self._last = prob
            return
        uphill = paid - prob * reward[..., None]  # d E[R] / d z, up to the temperature
        length = np.sqrt((change**2).sum(axis=(1, 2)))
        size = np.sqrt((uphill**2).sum(axis=(1, 2))) * length
        along = (uphill * change).sum(axis=(1, 2))
        told["step"][number + 1] = length
        np.divide(along, size, out=told["alignment"][number + 1], where=size > 0)

    def measures(self) -> dict[str, np.ndarray]:
        """Name -> (U + 1, R)."""
        return self._told

    def policy(self) -> np.ndarray:
        """Probabilities after the last update, (R, C, A)."""
        return self._last
