"""Checkup of a run: one possible fault at a time is corrected, and the same seeds are trained again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.bandit import simulate
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import never
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.text import tr

UPDATES, SEEDS = 60, tuple(range(32))
RATE, BONUS = 0.3, 0.3
"""A learning rate and an entropy bonus at which the bandits of this checkup do well."""


def _mended(settings: Settings, right: int) -> dict[str, Any]:
    """Changes that make the checker stop rewarding actions above the right one."""
    paid = settings.bandit.custom
    if settings.bandit.landscape != "custom" or right >= len(paid):
        return {}
    return {"task.custom": tuple(0.0 if reward > paid[right] else reward for reward in paid)}


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A correction of one possible fault.

    Attributes:
        cause: what was wrong if this helps.
        title: what is put right, in a word or a symbol.
        changes: (settings, right action from 0) -> dotted path -> value.
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
"""In the order in which they are tried."""


def audits(settings: Settings, right: int, updates: int = UPDATES) -> np.ndarray:
    """Probability of the right action before the first and after every update of the settings' own seed, (U + 1,).

    This is what a reader of the answers would find; training sees the checker's rewards alone.

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


def checkup(
    settings: Settings,
    right: int,
    *,
    seeds: Sequence[int] = SEEDS,
    updates: int = UPDATES,
    poll: Callable[[], None] = never,
) -> Iterator[tuple[str, Ensemble]]:
    """The runs as they are, under the name "", then with each remedy alone, one after the other.

    Args:
        settings: of the patient; a remedy that changes nothing in them gets the same runs.
        right: the action that is meant, counted from 0.
        seeds: (S,).
        updates: of each run.
        poll: called before each pass; what it raises ends the checkup.

    Raises:
        SettingsError: a task of several decisions, or a language model's.
    """
    ill = next(ensembles([settings], seeds, updates, poll=poll))
    yield "", ill
    for name, remedy in REMEDIES.items():
        treated = settings.replace(remedy.changes(settings, right))
        yield name, ill if treated == settings else next(ensembles([treated], seeds, updates, poll=poll))


def right_at_end(runs: Ensemble, right: int) -> np.ndarray:
    """Probability of the right action under every seed's last policy, (S,). NaN where a run broke down."""
    return np.asarray(runs.policy[:, 0, right])


def cause(runs: Mapping[str, Ensemble], right: int) -> int:
    """The place, from 1, of the remedy that helps most, on average over the seeds. 0 where none helps.

    What broke down (NaN) counts as never right.
    """
    ends = {name: float(np.nan_to_num(right_at_end(found, right)).mean()) for name, found in runs.items()}
    gains = [ends[name] - ends[""] for name in REMEDIES]
    best = int(np.argmax(gains))
    return best + 1 if gains[best] > 0 else 0
