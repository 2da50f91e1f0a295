"""Sampling of a batch: completions and their rewards, with optional resampling of dead groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grpo_core.advantages import equal_rewards
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import prompt_of, runs_last
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tabular_policy import Completions
from grpo_core.bandit.tasks import Task
from grpo_core.config import Learner

ATTEMPTS = 10
"""Maximum number of times that dead groups are redrawn before they are accepted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """The draws of an update.

    Attributes:
        completions: tokens, mask and context, (R, B, T).
        rewards: (R, B).
        attempt: (R, P) integer, the attempt at which each group was drawn; 0 = the first.
        redrawn: (R,) integer, number of redrawn groups, counting every attempt.
        step_rewards: (R, B, T), reward of the step that ends with each token, NaN if none does; None without steps.
        sampling_logp: (R, B, T), log π of the tokens under the sampling policy; None if that is the current one.
    """

    completions: Completions
    rewards: np.ndarray
    attempt: np.ndarray
    redrawn: np.ndarray
    step_rewards: np.ndarray | None = None
    sampling_logp: np.ndarray | None = None


def draw(
    learner: Learner, work: Task, prob: np.ndarray, step: int, streams: Streams, poll: Callable[[], None]
) -> Batch:
    """Draw the batch of update ``step``: G completions of every prompt from the policy π, ``prob`` (R, C, A).

    ``poll`` is called before each token and can raise an exception to stop.
    """
    runs, prompts, group = len(prob), len(work.start), learner.group_size
    shape = (prompts * group, work.longest)
    prompt = prompt_of(shape[0], prompts)
    uniforms = streams.uniforms(step, shape[0] * shape[1])
    drawn = policy.sample(prob, work, uniforms.reshape(runs, *shape), poll)
    rewards = runs_last(work.reward(prompt, drawn.tokens, drawn.mask))
    attempt = np.zeros((runs, prompts), dtype=np.intp)
    redrawn = np.zeros(runs, dtype=np.intp)
    again_at_all = learner.resample_dead and group > 1  # a group of one is always dead, so redrawing it is pointless
    for number in range(1, ATTEMPTS + 1) if again_at_all else ():
        dead = equal_rewards(rewards.reshape(runs, prompts, group))  # (R, P)
        again = np.flatnonzero(dead.any(axis=-1))
        if not again.size:
            break
        fresh_uniforms = streams.again(step, shape[0] * shape[1], number, again)
        fresh = policy.sample(prob[again], work, fresh_uniforms.reshape(-1, *shape), poll)
        replaced = np.repeat(dead[again], group, axis=-1)  # (some runs, B)
        for name in ("tokens",) if work.longest == 1 else ("tokens", "mask", "context"):
            kept = getattr(drawn, name)
            kept[again] = np.where(replaced[..., None], getattr(fresh, name), kept[again])
        rewards[again] = np.where(replaced, work.reward(prompt, fresh.tokens, fresh.mask), rewards[again])
        attempt[dead] = number
        redrawn += dead.sum(axis=-1)
    paid = None if work.step_rewards is None else runs_last(work.step_rewards(prompt, drawn.tokens, drawn.mask))
    return Batch(completions=drawn, rewards=rewards, step_rewards=paid, attempt=attempt, redrawn=redrawn)
