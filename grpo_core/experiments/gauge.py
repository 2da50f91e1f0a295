"""What is measured of many runs after every update."""

from __future__ import annotations

import numpy as np

from grpo_core import kl
from grpo_core.bandit import policy
from grpo_core.bandit.layout import runs_last_view
from grpo_core.bandit.tasks import Task

MEASURES = ("reward", "best_prob", "kl", "entropy", "alignment", "step")
"""What is known of every run after every update; averages over the prompts.

reward: the policy's exact expected reward. best_prob: probability of the best action. kl: KL(π‖π_ref) and entropy: of
π, in nats. alignment: cosine between the logits' change and the exact gradient of the expected reward, 0 where there
is none; step: that change's Euclidean length; both 0 at update 0.
"""

AT_ONCE = 1024
"""Policies read at once: few enough to stay in the processor's cache, many enough to be worth a call."""


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
        self._rewards = work.action_rewards[..., None]  # (C, A, 1)
        self._places = np.arange(len(self._rewards)), work.action_rewards.argmax(axis=-1)
        self._shape = runs_last_view(logits).shape  # (C, A, R)
        self.reference = policy.log_probs(logits, temperature)
        self._measures = {name: np.zeros((updates + 1, len(logits))) for name in MEASURES}
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._done = 0
        self._last = self.reference

    def read(self, logp: np.ndarray, change: np.ndarray | None) -> None:
        """Measure the next log π (R, C, A), and the logits' ``change`` in the update that follows; None ends it."""
        self._last = logp
        self._waiting.append((logp, np.zeros_like(logp) if change is None else change))
        if change is None or len(self._waiting) * self._shape[-1] >= AT_ONCE:
            self._measure()

    def _measure(self) -> None:
        """Measure the policies that wait for it; arrays are (N, C, A, R), as the runs lie in memory."""
        logp, change = (np.stack([runs_last_view(x) for x in both]) for both in zip(*self._waiting, strict=True))
        here = slice(self._done, self._done + len(logp))
        prob, measures = np.exp(logp), self._measures
        by_action = np.moveaxis(logp, -2, -1), np.moveaxis(prob, -2, -1)  # (N, C, R, A)
        reference = np.moveaxis(runs_last_view(self.reference), -2, -1)
        paid = prob * self._rewards
        reward = paid.sum(axis=-2)  # (N, C, R)
        measures["reward"][here] = reward.mean(axis=1)
        measures["best_prob"][here] = prob[:, *self._places].mean(axis=1)
        measures["kl"][here] = kl.exact(by_action[0], reference, by_action[1]).mean(axis=1)
        measures["entropy"][here] = kl.entropy(*by_action).mean(axis=1)
        uphill = paid - prob * reward[:, :, None]  # d E[R] / d z, up to the temperature
        length = np.sqrt((change**2).sum(axis=(1, 2)))  # (N, R)
        size = np.sqrt((uphill**2).sum(axis=(1, 2))) * length
        cosine = np.divide((uphill * change).sum(axis=(1, 2)), size, out=np.zeros_like(size), where=size > 0)
        after = slice(here.start + 1, here.stop + 1)
        room = len(measures["step"][after])  # nothing follows the last update
        measures["step"][after], measures["alignment"][after] = length[:room], cosine[:room]
        self._done = here.stop
        self._waiting.clear()

    def measures(self) -> dict[str, np.ndarray]:
        """Every measure by its name, (U + 1, R)."""
        return self._measures

    def policy(self) -> np.ndarray:
        """Probabilities after the last update, (R, C, A)."""
        return np.asarray(np.exp(self._last))
