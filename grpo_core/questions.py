"""Questions that only the model can answer: it is asked between two updates, and the answer is kept in the run."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.advantages import advantages
from grpo_core.record import Step


@dataclass(frozen=True, kw_only=True)
class Question:
    """What would this completion be worth?

    Attributes:
        step: the update whose group it joins; it is scored by the policy that sampled that group.
        group: the prompt, counted from 0.
        completion: the text, without an end sign.
    """

    step: int
    group: int
    completion: str

    def to_json(self) -> str:
        """One line; :meth:`from_json` reads it back."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Question:
        """The inverse of :meth:`to_json`."""
        return cls(**json.loads(text))


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """The completion, scored.

    Attributes:
        tokens: (T,) the end sign included.
        logp, ref_logp: (T,) under the policy that sampled the group, and under the reference.
        dist_logp: (T, V) the whole distribution at each token's place.
        reward: what it is paid.
        parts: (K,) parts of the reward, before their weights.
        words: what became of it, in a few words; empty where the task has none.
    """

    tokens: np.ndarray
    logp: np.ndarray
    ref_logp: np.ndarray
    dist_logp: np.ndarray
    reward: float
    parts: np.ndarray
    words: str = ""

    def to_json(self) -> str:
        """One line; :meth:`from_json` reads it back."""
        held = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return json.dumps({name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in held.items()})

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """The inverse of :meth:`to_json`."""
        held: dict[str, Any] = json.loads(text)
        arrays: dict[str, Any] = {name: np.array(x) if isinstance(x, list) else x for name, x in held.items()}
        return cls(**arrays)


def placed(step: Step, group: int, answer: Answer) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and advantages (G + 1,) of a group that the answered completion has joined, as its last member.

    With the KL in the reward, its own divergence counts as that of the others does.
    """
    objective = step.settings.objective
    rewards = recompute.grouped(step, step.rewards)  # (P, G)
    rewards = np.concatenate([rewards, np.full((len(rewards), 1), np.nan)], axis=-1)
    rewards[group, -1] = answer.reward
    k1 = None
    if objective.kl_in == "reward" and step.ref_logp is not None:
        each = recompute.grouped(step, np.where(step.mask, step.old_logp - step.ref_logp, 0.0).sum(axis=-1))
        k1 = np.concatenate([each, np.zeros((len(each), 1))], axis=-1)
        k1[group, -1] = float((answer.logp - answer.ref_logp).sum())
    if objective.baseline == "given":
        objective = objective.replace(baseline="group_mean")
    return rewards[group], advantages(objective, rewards, kl=k1)[group]
