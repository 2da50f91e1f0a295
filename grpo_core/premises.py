"""Facts on which sentences about an update depend: what its rewards mean, and which policy drew its samples."""

from __future__ import annotations

from typing import Literal

import numpy as np

from grpo_core.bandit.tasks import TASKS, reward_range, step_reward_range
from grpo_core.config.bandit_task import LANDSCAPES
from grpo_core.record import Step

NEAR = 1e-9
"""Largest difference between equal rewards, relative to the largest absolute reward (at least 1)."""

Meaning = Literal["constant", "right", "wrong", "highest", "lowest", "open"]


def right_share(step: Step) -> np.ndarray | None:
    """Return how much of each completion is right by the task's own check, whatever was paid for it, (B,).

    It is 0 or 1, except in the chain, where it is the share of right decisions. None for one-token landscapes, which
    have no right answer, and for other trainers' runs, whose rewards can mean anything.
    """
    settings = step.settings
    if settings.is_recorded:
        return None
    if settings.is_language:
        return None if step.reward_parts is None else step.reward_parts[:, 0]
    name = settings.bandit.landscape
    if name in LANDSCAPES:
        return None
    if name not in TASKS:
        raise ValueError(f"it is unknown what is right in the task “{name}”")
    right = TASKS[name].right
    return None if right is None else right(settings.bandit, step.tokens, step.mask)


def possible_rewards(step: Step, group: int) -> tuple[float, float] | None:
    """Return the lowest and the highest reward that the task can pay for the prompt ``group``, or None if unknown.

    If the steps of completions are compared, these are rewards of steps.
    """
    settings = step.settings
    if settings.is_recorded:
        return None
    if settings.is_language:
        return None if any(settings.language.part_weights) else (0.0, 0.0)
    if settings.objective.credits_steps:
        return step_reward_range(settings.bandit)
    if group >= settings.bandit.prompts:
        return None
    low, high = reward_range(settings.bandit)[group].tolist()
    return low, high


def meaning(step: Step, group: int, reward: float) -> Meaning:
    """Return what it means that every scored completion of ``group`` was paid ``reward``.

    - "constant": the task pays this prompt nothing else.
    - "right", "wrong": all completions are right by the task's own check, or nothing in any of them is.
    - "highest", "lowest": it is the highest or the lowest reward of this prompt.
    - "open": none of these, or it is not known.
    """
    ends, share, rows = possible_rewards(step, group), right_share(step), step.group == group
    near = NEAR * max(1.0, abs(reward))
    if ends is not None and ends[1] - ends[0] <= near:
        return "constant"
    if share is not None and np.isfinite(step.rewards[rows]).all():
        if (share[rows] == 1).all():
            return "right"
        if (share[rows] == 0).all():
            return "wrong"
    if ends is None:
        return "open"
    return "highest" if reward >= ends[1] - near else "lowest" if reward <= ends[0] + near else "open"


def has_difficulty(step: Step) -> bool:
    """Return whether another prompt of the task can be easier or harder, and a right answer changes the reward.

    The prompts of a bandit differ only in a constant, and nothing is known of other trainers' prompts.
    """
    settings = step.settings
    return settings.is_language and not settings.is_recorded and settings.language.answer_weight != 0


def drawn_by_earlier(step: Step) -> bool:
    """Return whether a policy of an earlier update drew the samples, as it does if the setting ``staleness`` is not 0.

    In the first update, there is no earlier policy. Of other trainers' runs it is not known, and the result is False.
    """
    settings = step.settings  # a language model's own sampler is always recorded
    return not settings.is_recorded and not settings.is_language and step.sampling_logp is not None


def cut_off(step: Step, *, stop: int, call_end: int) -> np.ndarray:
    """Return which completions of a language model's update the limit ended, boolean (B,).

    Neither its end sign ``stop`` nor a call too many, whose last token is ``call_end``, ended such a completion.
    Whether the loss counts its last token is another question.
    """
    task, real = step.settings.language, step.there
    ended = ((step.tokens == stop) & real).any(axis=-1)
    if task.has_tool:
        ended |= ((step.tokens == call_end) & real).sum(axis=-1) > task.calls
    return np.asarray((real.sum(axis=-1) >= task.max_tokens) & ~ended)


def can_move(step: Step) -> bool:
    """Return whether a gradient can move the policy: the learning rate is not 0. Of other trainers' runs it is True."""
    return step.settings.is_recorded or step.settings.optimizer.learning_rate > 0


def step_follows_rate(step: Step) -> bool:
    """Return whether the learning rate scales the step, rather than a fixed length to which a bandit's is rescaled."""
    settings = step.settings
    return settings.is_recorded or settings.is_language or settings.optimizer.step_length is None
