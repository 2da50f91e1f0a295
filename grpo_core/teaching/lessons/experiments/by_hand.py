"""Policies set by hand: all ratios between two of them, their divergence, and the expected step of an update.

One probability is dragged, and the other actions share the rest. A divergence is exact in both directions, estimated,
and as gradients. An expected step is over all possible groups, weighted by their probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product

import numpy as np

from grpo_core import kl
from grpo_core import objective as loss
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import runs_last
from grpo_core.bandit.simulate import Batch, State, start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tabular_policy import Completions, log_probs
from grpo_core.bandit.tasks import task
from grpo_core.config import Objective, Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.sweep import ESTIMATORS
from grpo_core.objective import Terms
from grpo_core.progress import unpolled
from grpo_core.text import plural, tr

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


SAMPLED = ("k1", "k2", "k3")
"""Estimators with distinct values. Variants multiplied by the ratio are left out: for fresh samples, the ratio is 1."""


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
    def tokens(self) -> np.ndarray:
        """Tokens drawn from π with the bandit's own sampler, (n,) integer."""
        work = task(_one_decision(len(self.logp)).bandit)
        streams = Streams((self.seed,))
        dist = runs_last(np.broadcast_to(self.logp, (streams.runs, 1, len(self.logp))))
        uniforms = streams.uniforms(1, self.samples).reshape(streams.runs, self.samples, 1)
        return policy.sample(np.exp(dist), work, uniforms, unpolled).tokens[0, :, 0]

    @cached_property
    def sampled(self) -> dict[str, np.ndarray]:
        """The value of each estimator for each of :attr:`tokens`, (n,) each, in nats."""
        return {name: kl.estimate(name, self.logp[self.tokens], self.ref_logp[self.tokens]) for name in SAMPLED}

    @cached_property
    def running(self) -> dict[str, np.ndarray]:
        """The mean of the first 1, 2, ... values of each estimator, (n,) each."""
        counted = np.arange(1, self.samples + 1)
        return {name: np.cumsum(values) / counted for name, values in self.sampled.items()}

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
            "negative_k1": lambda: float((self.sampled["k1"] < 0).mean()),
            "negative_k3": lambda: float((self.sampled["k3"] < 0).mean()),
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


MOST_GROUPS = 20_000
"""Maximum number of enumerated groups."""


def expected_step(settings: Settings, logits: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Return −E[d loss / d logits] of the first pass, (A,), over all A^G groups, for one prompt and one decision.

    Args:
        settings: settings under which ``update`` computes the gradient of every group.
        logits: logits of the policy, (A,).
        reference: logits of the reference policy, (A,); the task's starting policy by default.

    Raises:
        SettingsError: the task has several prompts or decisions, or there are too many groups to enumerate.
    """
    work, size, actions = task(settings.bandit), settings.learner.group_size, len(logits)
    if work.action_rewards is None or len(work.action_rewards) != 1 or work.action_rewards.shape[1] != actions:
        raise SettingsError(
            "task",
            settings.bandit.landscape,
            plural(
                "one prompt with {actions} action is needed", "one prompt with {actions} actions is needed", actions
            ).format(actions=actions),
        )
    if actions**size > MOST_GROUPS:
        raise SettingsError(
            "group_size",
            size,
            plural(
                "{actions} action allows at most {most_groups:,} groups here",
                "{actions} actions allow at most {most_groups:,} groups here",
                actions,
            ).format(actions=actions, most_groups=MOST_GROUPS),
        )
    groups = np.array(list(product(range(actions), repeat=size)))  # (A^G, G)
    streams = Streams(range(len(groups)))
    fresh = start(work, streams.runs)
    state = State(step=0, logits=_in_every_run(logits, streams.runs), moments=fresh.moments, critic=fresh.critic)
    tokens = runs_last(groups[:, :, None])
    mask = np.ones_like(tokens, dtype=bool)
    batch = Batch(
        completions=Completions(tokens=tokens, mask=mask, context=np.zeros_like(tokens)),
        rewards=runs_last(work.reward(np.zeros(size, dtype=np.intp), tokens, mask)),
        attempt=np.zeros((len(groups), 1), dtype=np.intp),
        redrawn=np.zeros(len(groups), dtype=np.intp),
    )
    temperature = settings.learner.temperature
    ref = None if reference is None else log_probs(_in_every_run(reference, streams.runs), temperature)
    once = settings.replace({"learner.mu": 1})
    gradient = update(once, work, state, streams, batch=batch, reference=ref).gradient[0][:, 0]  # (A^G, A)
    chance = np.exp(log_probs(logits, temperature))[groups].prod(axis=-1)
    return np.asarray(-(chance[:, None] * gradient).sum(axis=0))


def slope(value: Callable[[np.ndarray], np.ndarray], logits: np.ndarray, width: float = 1e-5) -> np.ndarray:
    """Return d value / d logits (A,) by central differences of ``value``, a function from log π (..., A) to (...)."""
    shifts = width * np.eye(len(logits))
    above, below = (value(log_probs(logits + way * shifts, 1.0)) for way in (1, -1))
    return np.asarray((above - below) / (2 * width))


def _in_every_run(row: np.ndarray, runs: int) -> np.ndarray:
    return runs_last(np.broadcast_to(row, (runs, 1, len(row))))
