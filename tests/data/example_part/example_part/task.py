"""A task of two tokens: a lock whose second digit must be one above the first."""

from __future__ import annotations

import numpy as np

from grpo_core.bandit.tasks import END, LongTask, Task
from grpo_core.config import BanditTask


def right(config: BanditTask, tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return 1 for the completions (..., T) that open the lock, and 0 for the others."""
    return np.asarray(tokens[..., 1] == (tokens[..., 0] + 1) % config.actions, dtype=float)


def build(config: BanditTask) -> Task:
    """Build the task. State 0 is before the first digit, state 1 + a after the digit a."""
    levels, digits = np.array(config.levels), range(config.actions)
    prompts = tuple(f"lock {p + 1}" for p in range(config.prompts))
    states = ("before the first digit", *(f"after {a}" for a in digits))
    following = np.full((1 + config.actions, config.actions), END)
    following[0] = np.arange(config.actions) + 1
    return Task(
        next_state=following,
        start=np.zeros((config.prompts, 1 + config.actions, config.actions)),
        longest=2,
        reward=lambda prompt, tokens, mask: levels[prompt] + right(config, tokens, mask),
        vocabulary=tuple(map(str, digits)),
        prompts=prompts,
        context_names=tuple(f"{prompt}, {state}" for prompt in prompts for state in states),
    )


LOCK = LongTask(build=build, longest=lambda config: 2, ends=(0.0, 1.0), right=right)
