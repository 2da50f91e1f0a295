"""A sweep: the same seeds under every value of a setting, in one call along the run axis where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core import kl
from grpo_core.bandit.simulate import never
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings, described_at
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import MEASURES, simulated

SIDE_BY_SIDE = (
    "objective.beta", "objective.clip_low", "objective.clip_high", "optimizer.learning_rate", "learner.temperature",
)  # fmt: skip
"""Numeric settings that may differ from run to run within one call."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep:
    """Runs over a grid.

    Attributes:
        settings: what all runs share.
        path: the setting that differs.
        values: (K,) what it was.
        seeds: (S,).
        measures: name -> (U + 1, K, S), update 0 first.
        policy: (K, S, C, A) probabilities after the last update.
    """

    settings: Settings
    path: str
    values: tuple[Any, ...]
    seeds: tuple[int, ...]
    measures: dict[str, np.ndarray]
    policy: np.ndarray

    def run_settings(self, place: int, seed: int) -> Settings:
        """The settings of one run of the sweep: trained by itself it repeats bit for bit."""
        return self.settings.replace({self.path: self.values[place], "seed": self.seeds[seed]})


def sweep(
    settings: Settings,
    path: str,
    values: Sequence[Any],
    *,
    seeds: Sequence[int],
    updates: int = 200,
    poll: Callable[[], None] = never,
) -> Sweep:
    """Every value of one setting under the same seeds, with common random numbers.

    Args:
        settings: what the runs share.
        path: dotted path of the setting, such as ``objective.beta``.
        values: (K,) what it takes.
        seeds: (S,).
        updates: U of every run.
        poll: called before each pass; what it raises ends the sweep.

    Raises:
        SettingsError: there is no such setting, a value is not allowed, or the task has several decisions.
    """
    if not values or not seeds:
        raise SettingsError(path, None, "a sweep needs at least one value and one seed")
    try:
        described_at(path)
    except KeyError:
        raise SettingsError(path, None, "there is no such setting") from None
    for value in values:  # each is refused by its own name before anything is computed
        settings.replace({path: value})
    if path in SIDE_BY_SIDE and len(seeds) * len(values) > 1:
        column = np.repeat(np.array(values, dtype=float), len(seeds))[:, None, None]
        done = simulated(settings.replace({path: column}), seeds, updates, copies=len(values), poll=poll)
        shape = len(values), len(seeds)
        measures = {name: done.measures[name].reshape(-1, *shape) for name in MEASURES}
        policies = done.policy.reshape(*shape, *done.policy.shape[1:])
    else:
        each = [simulated(settings.replace({path: value}), seeds, updates, poll=poll) for value in values]
        measures = {name: np.stack([one.measures[name] for one in each], axis=1) for name in MEASURES}
        policies = np.stack([one.policy for one in each])
    return Sweep(
        settings=settings, path=path, values=tuple(values), seeds=tuple(seeds), measures=measures, policy=policies
    )


def exponential_tilt(settings: Settings, beta: float) -> np.ndarray:
    """The policy that maximises E[R] − β KL(π‖π_ref): π ∝ π_ref exp(R / β), (C, A).

    Where REINFORCE with the exact KL in its loss arrives; Ziebart 2010, and DPO (arXiv:2305.18290) equation 4.

    Raises:
        SettingsError: β is 0, or the task's actions have no reward of their own.
    """
    work = task(settings.bandit)
    if work.action_rewards is None:
        raise SettingsError("task.landscape", settings.bandit.landscape, "choose a task of one decision")
    if beta <= 0:
        raise SettingsError("objective.beta", beta, "without a KL there is no optimum inside the simplex")
    logits = work.start.reshape(work.action_rewards.shape) / settings.learner.temperature + work.action_rewards / beta
    logits = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True))


def tilt_kl(settings: Settings, beta: float) -> float:
    """KL(π‖π_ref) in nats at that optimum, averaged over the prompts."""
    best = exponential_tilt(settings, beta)
    start = task(settings.bandit).start.reshape(best.shape) / settings.learner.temperature
    reference = start - np.log(np.exp(start).sum(axis=-1, keepdims=True))
    return float(kl.exact(np.log(np.maximum(best, 1e-300)), reference).mean())
