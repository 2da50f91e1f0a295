"""Checkup of a run: correct one possible fault at a time and train again with the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.bandit import simulate
from grpo_core.bandit import tabular_policy as policy
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

UPDATES, SEEDS = 60, 32
RATE, BONUS = 0.3, 0.3
"""A learning rate and a strength of the entropy bonus that work well for the bandits of this checkup."""


def _mended(settings: Settings, right: int) -> dict[str, Any]:
    """Return the changes to the rewards after which no action is rewarded more than the correct one, ``right``."""
    paid = settings.bandit.custom
    if settings.bandit.landscape != "custom" or right >= len(paid):
        return {}
    return {"task.custom": tuple(0.0 if reward > paid[right] else reward for reward in paid)}


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A correction of one possible fault.

    Attributes:
        cause: the fault, if this correction helps.
        title: what is corrected, as a word or a symbol.
        changes: function of the settings and the correct action, counted from 0, that returns dotted path -> value.
    """

    cause: str
    title: str
    changes: Callable[[Settings, int], dict[str, Any]]


REMEDIES = {
    "rate": Remedy(
        cause=tr("Learning rate"),
        title=tr("α = 0.3"),
        changes=lambda settings, right: {"optimizer.learning_rate": RATE},
    ),
    "cold": Remedy(
        cause=tr("Too cold"), title=tr("T = 1"), changes=lambda settings, right: {"learner.temperature": 1.0}
    ),
    "dead": Remedy(
        cause=tr("Dead groups"), title=tr("resample"), changes=lambda settings, right: {"learner.resample_dead": True}
    ),
    "collapse": Remedy(
        cause=tr("Entropy collapse"),
        title=tr("H bonus"),
        changes=lambda settings, right: {"objective.entropy_bonus": BONUS},
    ),
    "hack": Remedy(cause=tr("Hacked reward"), title=tr("checker"), changes=_mended),
    "beta": Remedy(cause=tr("β too big"), title=tr("β = 0"), changes=lambda settings, right: {"objective.beta": 0.0}),
}
"""Remedies, in the order in which they are tried."""


def audits(settings: Settings, right: int, updates: int = UPDATES) -> np.ndarray:
    """Return the probability of the correct action at the start and after every update, (U + 1,).

    A person reading the answers would find this share of them correct; training only sees the checker's rewards.

    Raises:
        SettingsError: the task is that of a language model.
    """
    probs: list[float] = []
    for done in simulate.updates(settings, [settings.seed]):
        temperature = settings.learner.temperature
        if not probs:
            probs.append(float(np.exp(done.dist_logp[0][0, 0, right])))
        probs.append(float(np.exp(policy.log_probs(done.state.logits, temperature)[0, 0, right])))
        if done.state.step == updates:
            break
    return np.array(probs)


def treatments(settings: Settings, right: int) -> dict[str, Settings]:
    """Return the settings of the runs to compare: ``settings`` under the name "", then with each remedy on its own.

    ``right`` is the intended action, counted from 0.
    """
    treated = {name: settings.replace(remedy.changes(settings, right)) for name, remedy in REMEDIES.items()}
    return {"": settings, **treated}


def right_at_end(runs: Ensemble, right: int) -> np.ndarray:
    """Return the probability of the correct action under every seed's last policy, (S,). NaN if a run broke down."""
    return np.asarray(runs.policy[:, 0, right])


def cause(runs: Mapping[str, Ensemble], right: int) -> int:
    """Return the number, counted from 1, of the remedy that helps most on average over the seeds, or 0 if none helps.

    A run that broke down (NaN) counts as a probability of 0.
    """
    ends = {name: float(np.nan_to_num(right_at_end(found, right)).mean()) for name, found in runs.items()}
    gains = [ends[name] - ends[""] for name in REMEDIES]
    best = int(np.argmax(gains))
    return best + 1 if gains[best] > 0 else 0
