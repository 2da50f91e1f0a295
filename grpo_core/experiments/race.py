"""The fair race: algorithms on the same landscape, under the same seeds, at equal updates, samples or step length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.bandit.simulate import never
from grpo_core.bandit.tasks import task
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import simulated

FAIRNESS = ("updates", "samples", "step_length")
SIX = ("REINFORCE", "REINFORCE + baseline", "RLOO", "GRPO (DeepSeekMath)", "Dr. GRPO", "PPO-clip")
"""Who races unless others are named."""
STEP_LENGTH = 0.3
"""Euclidean length of an update of the logits in a race of equal step length."""
LOCAL_PEAK: dict[str, Any] = {
    "task.landscape": "double_peak", "task.half_width": 2.5, "task.bias": 2.0, "task.bias_action": 3,
}  # fmt: skip
"""The double peak with a start that leans towards the lower one: from a uniform start hardly anybody gets stuck."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lane:
    """One algorithm of a race.

    Attributes:
        name: of the preset.
        settings: what it ran under, but for the seed.
        samples: (U + 1,) completions drawn so far.
        measures: name -> (U + 1, S).
        stuck: share of the seeds that end with another action than the best as their likeliest.
    """

    name: str
    settings: Settings
    samples: np.ndarray
    measures: dict[str, np.ndarray]
    stuck: float

    @property
    def wrong_way(self) -> np.ndarray:
        """Share of the seeds whose step pointed away from more reward, (U,)."""
        return np.asarray((self.measures["alignment"][1:] < 0).mean(axis=-1))


def race(
    settings: Settings,
    names: Sequence[str] = SIX,
    *,
    seeds: Sequence[int] = tuple(range(64)),
    updates: int = 200,
    fairness: str = "updates",
    step_length: float = STEP_LENGTH,
    poll: Callable[[], None] = never,
) -> list[Lane]:
    """All algorithms over the same seeds, with common random numbers.

    Args:
        settings: task, group size, learning rate, passes; each preset puts its own objective on top.
        names: of :data:`PRESETS`.
        seeds: (S,).
        updates: of each algorithm; at equal samples, of the one that draws most an update.
        fairness: "updates": one batch of the same size each; "samples": each at its own group size (REINFORCE 1), and
            as many updates as make the same number of completions; "step_length": every update of the logits has
            ``step_length``, and one of zero stays zero.
        poll: called before each pass; what it raises ends the race.

    Raises:
        SettingsError: a preset or a kind of fairness that does not exist, or a task of several decisions.
    """
    if fairness not in FAIRNESS:
        raise SettingsError("fairness", fairness, f"allowed is one of {', '.join(FAIRNESS)}")
    lanes = []
    budget = updates * settings.learner.group_size
    for name in names:
        if name not in PRESETS:
            raise SettingsError("preset", name, "there is no such preset")
        own = PRESETS[name].applied_to(settings)
        if fairness == "samples" and name in ("REINFORCE", "REINFORCE + baseline") and own.task.prompts == 1:
            own = own.replace({"learner.group_size": 1})
        count = budget // own.learner.group_size if fairness == "samples" else updates
        length = step_length if fairness == "step_length" else None
        done = simulated(own, seeds, count, step_length=length, poll=poll)
        each = own.learner.group_size * own.task.prompts
        lanes.append(
            Lane(
                name=name,
                settings=own,
                samples=np.arange(count + 1) * each,
                measures=done.measures,
                stuck=_stuck(own, done.policy),
            )
        )
    return lanes


def _stuck(settings: Settings, policy: np.ndarray) -> float:
    rewards = task(settings.bandit).action_rewards
    assert rewards is not None
    return float((policy.argmax(axis=-1) != rewards.argmax(axis=-1)).any(axis=-1).mean())
