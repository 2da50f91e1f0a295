"""Measurements of many runs after every update."""

from __future__ import annotations

import numpy as np

from grpo_core import kl
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import runs_last_view
from grpo_core.bandit.tasks import Task

MEASURES = ("reward", "best_prob", "kl", "entropy", "alignment", "step")
"""What is known of every run after every update; averages over the prompts.

reward: the policy's exact expected reward. best_prob: probability of the best action. kl: KL(π‖π_ref) and entropy: of
π, in nats. alignment: cosine between the logits' change and the exact gradient of the expected reward, 0 where there
is none; step: that change's Euclidean length; both 0 at update 0.
"""

AT_ONCE = 4096
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
        self._by_action = runs_last_view(self.reference).swapaxes(-2, -1)  # (C, R, A)
        self._measures = {name: np.zeros((updates + 1, len(logits))) for name in MEASURES}
        waiting = max(1, AT_ONCE // len(logits))
        self._logp, self._change = np.empty((waiting, *self._shape)), np.empty((waiting, *self._shape))
        self._done = self._waiting = 0
        self._last = self.reference

    def read(self, logp: np.ndarray, before: np.ndarray | None = None, after: np.ndarray | None = None) -> None:
        """Measure the next log π (R, C, A), and the update that follows it, from and to these logits. None ends it."""
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
        """Measure the policies that wait for it, (N, C, A, R), as the runs lie in memory."""
        here = slice(self._done, self._done + len(logp))
        prob, measures = np.exp(logp), self._measures
        by_action = logp.swapaxes(-2, -1), prob.swapaxes(-2, -1)  # (N, C, R, A)
        paid = prob * self._rewards
        reward = paid.sum(axis=-2)  # (N, C, R)
        measures["reward"][here] = _averaged(reward)
        measures["best_prob"][here] = _averaged(prob[:, *self._places])
        measures["kl"][here] = _averaged(kl.exact(by_action[0], self._by_action, by_action[1]))
        measures["entropy"][here] = _averaged(kl.entropy(*by_action))
        prob *= reward[:, :, None]
        uphill = np.subtract(paid, prob, out=paid)  # d E[R] / d z, up to the temperature
        cosine = _inner_product(uphill, change)  # (N, R), times both lengths
        length, size = _length(change), _length(uphill)
        size *= length
        cosine = np.divide(cosine, size, out=np.zeros_like(size), where=size > 0)
        after = slice(here.start + 1, here.stop + 1)
        space = len(measures["step"][after])  # nothing follows the last update
        measures["step"][after], measures["alignment"][after] = length[:space], cosine[:space]
        self._done, self._waiting = here.stop, 0

    def measures(self) -> dict[str, np.ndarray]:
        """Every measure by its name, (U + 1, R)."""
        return self._measures

    def policy(self) -> np.ndarray:
        """Probabilities after the last update, (R, C, A)."""
        return np.asarray(np.exp(self._last))


def _averaged(by_prompt: np.ndarray) -> np.ndarray:
    """The mean over the prompts, (N, C, R) -> (N, R)."""
    return by_prompt[:, 0] if by_prompt.shape[1] == 1 else by_prompt.mean(axis=1)


def _inner_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sum of the products of each run's tables, (N, C, A, R) -> (N, R)."""
    return np.asarray(np.einsum("ncar,ncar->nr", x, y))


def _length(x: np.ndarray) -> np.ndarray:
    """Euclidean length of each run's table, (N, C, A, R) -> (N, R)."""
    return np.asarray(np.sqrt(_inner_product(x, x)))
