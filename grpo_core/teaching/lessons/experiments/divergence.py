"""Divergence of a policy from its reference: exact in both directions, estimated, and as gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grpo_core import kl
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import runs_last
from grpo_core.bandit.simulate import never
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.experiments.sweep import ESTIMATORS
from grpo_core.teaching.lessons.experiments.expected import expected_step, slope

SAMPLED = ("k1", "k2", "k3")
"""Estimators with distinct values. Variants multiplied by the ratio are left out: for fresh samples, the ratio is 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """Tokens drawn from π, and the estimate of KL(π‖π_ref) from each.

    Attributes:
        tokens: (n,) integer.
        values: estimator -> (n,), in nats.
        running: estimator -> (n,), mean of the first 1, 2, ... samples.
    """

    tokens: np.ndarray
    values: dict[str, np.ndarray]
    running: dict[str, np.ndarray]


EXACT = 1e-6
"""Maximum difference between a step and an equal gradient, given the error of finite differences."""


class Divergence:
    """Divergences and estimators for two policies. Each number is computed on first access.

    Attributes:
        logp, ref_logp: log π and log π_ref, (A,), in nats.
        samples, seed: number of tokens drawn, and the seed of their random stream.
    """

    def __init__(self, logp: np.ndarray, ref_logp: np.ndarray, samples: int, seed: int) -> None:
        self.logp, self.ref_logp, self.samples, self.seed = logp, ref_logp, samples, seed

    @cached_property
    def both(self) -> tuple[float, float]:
        """KL(π‖π_ref) and KL(π_ref‖π), in nats."""
        return float(kl.exact(self.logp, self.ref_logp)), float(kl.exact(self.ref_logp, self.logp))

    @cached_property
    def moments(self) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of each estimator over all tokens that π can draw, in nats."""
        prob, moments = np.exp(self.logp), {}
        for name, value in self.by_action.items():
            mean = float(prob @ value)
            moments[name] = mean, float(np.sqrt(prob @ (value - mean) ** 2))
        return moments

    @cached_property
    def sampled(self) -> Sampled:
        """Tokens drawn from π with the bandit's own sampler, with each estimator's value for each of them."""
        work = task(_one_decision(len(self.logp)).bandit)
        streams = Streams((self.seed,))
        dist = runs_last(np.broadcast_to(self.logp, (streams.runs, 1, len(self.logp))))
        uniforms = streams.uniforms(1, self.samples).reshape(streams.runs, self.samples, 1)
        tokens = policy.sample(np.exp(dist), work, uniforms, never).tokens[0, :, 0]
        values = {name: kl.estimate(name, self.logp[tokens], self.ref_logp[tokens]) for name in SAMPLED}
        counted = np.arange(1, self.samples + 1)
        return Sampled(tokens=tokens, values=values, running={n: np.cumsum(v) / counted for n, v in values.items()})

    @cached_property
    def by_action(self) -> dict[str, np.ndarray]:
        """The value of each estimator for each sampled action, (A,) each, in nats."""
        return {name: kl.estimate(name, self.logp, self.ref_logp) for name in SAMPLED}

    @cached_property
    def pulls(self) -> dict[str, np.ndarray]:
        """The expected step on the logits (A,) for each estimator in the loss, at the first pass.

        β is 1 and all rewards are equal, so the step is that of the KL alone, as computed by the bandit's update.
        """
        alone = _one_decision(len(self.logp)).replace(
            {"learner.group_size": 1, "objective.beta": 1.0, "objective.kl_in": "loss"}
        )
        return {
            name: expected_step(alone.replace(changes), self.logp, self.ref_logp)
            for name, changes in ESTIMATORS.items()
        }

    @cached_property
    def descents(self) -> tuple[np.ndarray, np.ndarray]:
        """−∇KL(π‖π_ref) and −∇KL(π_ref‖π) with respect to the logits (A,), by finite differences."""
        ref_logp = self.ref_logp
        toward = slope(lambda x: np.asarray(kl.exact(x, ref_logp)), self.logp)
        back = slope(lambda x: np.asarray(kl.exact(np.broadcast_to(ref_logp, x.shape), x)), self.logp)
        return -toward, -back

    def size(self, name: str) -> float:
        """Return the largest absolute entry of an estimator's expected step."""
        return float(np.abs(self.pulls[name]).max())

    def off(self, name: str, way: int) -> float:
        """Return the largest difference between an estimator's expected step and a descent direction.

        ``way``: 0 for that of KL(π‖π_ref), 1 for that of KL(π_ref‖π).
        """
        return float(np.abs(self.pulls[name] - self.descents[way]).max())

    def right_pull(self) -> float:
        """Return which of k1, k2 and k3 (1, 2, 3) has a step that descends KL(π‖π_ref), or 0 if none or several do."""
        right = [n for n, name in enumerate(("k1", "k2", "k3"), start=1) if self.off(name, 0) < EXACT]
        return float(right[0]) if len(right) == 1 else 0.0

    def answers(self) -> dict[str, Callable[[], float]]:
        """Return the numbers that predictions are compared with, by name."""
        return {
            "kl": lambda: self.both[0],
            "reverse": lambda: self.both[1],
            "asymmetry": lambda: self.both[0] - self.both[1],
            "negative_k1": lambda: float((self.sampled.values["k1"] < 0).mean()),
            "negative_k3": lambda: float((self.sampled.values["k3"] < 0).mean()),
            "k2_bias": lambda: self.moments["k2"][0] - self.both[0],
            "k3_bias": lambda: self.moments["k3"][0] - self.both[0],
            "spread_difference": lambda: self.moments["k3"][1] - self.moments["k1"][1],
            "pull_k1": lambda: self.size("k1"),
            "right_pull": self.right_pull,
            "k2_off": lambda: self.off("k2", 0),
            "k3_off": lambda: self.off("k3", 0),
            "k3_off_back": lambda: self.off("k3", 1),
            "ratio_k3_off": lambda: self.off("ratio × k3", 0),
            "ratio_k3_off_back": lambda: self.off("ratio × k3", 1),
        }


ANSWERS = tuple(Divergence(np.zeros(1), np.zeros(1), 1, 0).answers())
"""Names of the numbers in :meth:`Divergence.answers`."""


def _one_decision(actions: int) -> Settings:
    """Return settings with one decision between ``actions`` tokens that all have the same reward."""
    return Settings().replace(
        {"task.landscape": "custom", "task.actions": actions, "task.custom": (0.5,) * actions, "learner.mu": 1}
    )
