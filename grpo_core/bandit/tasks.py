"""Prompts and rewards of the tabular policy: one-action landscapes, the length toy, the chain.

A task is a small automaton. A completion begins in state 0; each token (an action) has no reward of its own and leads
to the next state or to the end; the reward is given once, for the full completion. A *context* is a pair of prompt and
state: row p S + s of every table of distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grpo_core.bandit.layout import taken
from grpo_core.config import BanditTask
from grpo_core.plugins import Rows, of_type
from grpo_core.text import tr

END = -1
"""Next state after the token that ends a completion."""

Scores = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(prompt (B,), tokens (R, B, T), mask (R, B, T)) -> numbers for each completion."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A task in the form that policy, sampler and scorer use.

    Attributes:
        next_state: (S, A) integer, the state after an action; ``END`` if the action ends the completion.
        start: (P, S, A) logits of the starting policy, which is also the reference policy.
        longest: T, the number of tokens of the longest completion.
        reward: function that returns the rewards (R, B) of completions.
        parts: function that returns the parts of the rewards (R, B, K), named by ``reward_names``; None if rewards have
            no parts.
        step_rewards: function that returns a checker's reward for the step that ends with each token (R, B, T), NaN if
            none ends; None if completions have no steps.
        action_rewards: (C, A) reward of every action; None if single actions have no reward of their own.
        vocabulary, prompts, context_names, reward_names: names of the entries of A, P, C and K.
    """

    next_state: np.ndarray
    start: np.ndarray
    longest: int
    reward: Scores
    parts: Scores | None = None
    step_rewards: Scores | None = None
    action_rewards: np.ndarray | None = None
    vocabulary: tuple[str, ...]
    prompts: tuple[str, ...]
    context_names: tuple[str, ...]
    reward_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LongTask:
    """A kind of task with several tokens, a row of :data:`TASKS`.

    Attributes:
        build: function that returns the task for its settings. It adds the prompts' levels to the rewards.
        longest: function that returns T, the maximum length of a completion in tokens.
        ends: the lowest and the highest reward that a completion can earn, without the prompt's level.
        right: function (settings, tokens (B, T), mask (B, T)) -> how much of each completion is right, (B,) from 0 to
            1; None if no answer of the task is right or wrong.
    """

    build: Callable[[BanditTask], Task]
    longest: Callable[[BanditTask], int]
    ends: tuple[float, float]
    right: Callable[[BanditTask, np.ndarray, np.ndarray], np.ndarray] | None = None


def task(config: BanditTask) -> Task:
    return TASKS[config.landscape].build(config) if config.landscape in TASKS else _landscape(config)


def landscape_rewards(config: BanditTask) -> np.ndarray:
    """Return the reward of each action of a one-token task, (A,), before the prompt's level is added.

    single_peak: max(0, 1 − |a − peak| / half_width); double_peak: the higher of such triangles of height 0.7 at 3 and
    1.0 at 8; linear: a/10; custom: the given numbers. Actions are counted from 1.
    """
    a = np.arange(1, config.actions + 1, dtype=float)
    match config.landscape:
        case "double_peak":
            left, right = _triangle(a, 3, config.half_width, 0.7), _triangle(a, 8, config.half_width, 1.0)
            return np.asarray(np.maximum(left, right))
        case "linear":
            return np.asarray(a / 10)
        case "custom":
            return np.array(config.custom)
        case "single_peak":
            return _triangle(a, config.peak, config.half_width, 1.0)
        case landscape:
            raise ValueError(f"the landscape “{landscape}” has no rewards of actions")


def reward_range(config: BanditTask) -> np.ndarray:
    """Return the lowest and the highest reward that a completion of each prompt can earn, (P, 2)."""
    if config.landscape in TASKS:
        ends = TASKS[config.landscape].ends
    else:
        rewards = landscape_rewards(config)
        ends = float(rewards.min()), float(rewards.max())
    return np.asarray(_levels(config)[:, None] + np.array(ends))


def right_actions(config: BanditTask) -> np.ndarray:
    """Return the right action, from 0, at each decision of the chain, (T,): three more each time, modulo A."""
    return np.asarray(3 * np.arange(config.max_length) % config.actions)


def step_reward_range(config: BanditTask) -> tuple[float, float]:
    """Return the lowest and the highest reward that the checker of the chain's steps pays for a step."""
    work, shape = task(config), (1, config.actions, config.max_length)
    every = np.broadcast_to(np.arange(config.actions)[:, None], shape)  # each action at each decision
    assert work.step_rewards is not None
    paid = work.step_rewards(np.zeros(config.actions, int), every, np.ones(shape, bool))
    return float(paid.min()), float(paid.max())


def _triangle(a: np.ndarray, peak: float, half_width: float, height: float) -> np.ndarray:
    return np.asarray(height * np.maximum(0, 1 - np.abs(a - peak) / half_width))


def _landscape(config: BanditTask) -> Task:
    """Build a task of one decision, in which each action has a reward."""
    table = _levels(config)[:, None] + landscape_rewards(config)  # (P, A)
    return Task(
        next_state=np.full((1, config.actions), END),
        start=_start(config, states=1, actions=config.actions),
        longest=1,
        reward=lambda prompt, tokens, mask: taken(
            table, tokens[..., 0] if len(table) == 1 else prompt * config.actions + tokens[..., 0]
        ),
        action_rewards=table,
        vocabulary=_numbered(config.actions),
        prompts=_prompts(config),
        context_names=_prompts(config),
    )


def _length(config: BanditTask) -> Task:
    """Build the length toy: an answer, right or wrong, followed by any number of further tokens, which are worth
    nothing.

    The answer is given in state 0. In state 1 (after a right answer) and state 2 (after a wrong one), action 0
    continues and action 1 stops.
    """
    levels = _levels(config)
    return Task(
        next_state=np.array([[1, 2], [1, END], [2, END]]),
        start=_start(config, states=3, actions=2),
        longest=config.max_length,
        reward=lambda prompt, tokens, mask: levels[prompt] + (tokens[..., 0] == 0),
        vocabulary=(tr("right / more"), tr("wrong / stop")),
        prompts=_prompts(config),
        context_names=_contexts(config, (tr("answer"), tr("after a right answer"), tr("after a wrong answer"))),
    )


def _chain(config: BanditTask) -> Task:
    """Build the chain of ``max_length`` decisions, each with one right action.

    The outcome reward is the share of right decisions, paid once at the end: an all-or-nothing reward would be earned
    by chance only once in A^T completions and could not be learned. The parts say which decisions were right. A step
    checker rewards the same decisions; a faulty one also rewards one particular action wherever it is taken.
    """
    levels, right, steps = _levels(config), right_actions(config), config.max_length
    position = np.arange(steps)
    following = np.append(position[1:], END)

    def parts(prompt: np.ndarray, tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return np.asarray((tokens == right) & mask, dtype=float)

    def step_rewards(prompt: np.ndarray, tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
        paid = parts(prompt, tokens, mask)
        if config.faulty_action is not None:
            paid = np.where(tokens == config.faulty_action - 1, config.faulty_reward, paid)
        return np.where(mask, paid, np.nan)

    return Task(
        next_state=np.repeat(following[:, None], config.actions, axis=1),
        start=_start(config, states=steps, actions=config.actions),
        longest=steps,
        reward=lambda prompt, tokens, mask: levels[prompt] + parts(prompt, tokens, mask).sum(axis=-1) / steps,
        parts=parts,
        step_rewards=step_rewards,
        vocabulary=_numbered(config.actions),
        prompts=_prompts(config),
        context_names=_contexts(config, tuple(tr("decision {number}").format(number=t + 1) for t in position)),
        reward_names=tuple(tr("decision {t} right").format(t=t + 1) for t in position),
    )


def _start(config: BanditTask, *, states: int, actions: int) -> np.ndarray:
    """Return the starting logits (P, S, A): uniform, except for the bias towards one action in every state."""
    logits = np.zeros((config.prompts, states, actions))
    if config.bias_action <= actions:
        logits[..., config.bias_action - 1] = config.bias
    return logits


def _levels(config: BanditTask) -> np.ndarray:
    return np.array(config.levels)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(str(a) for a in range(1, count + 1))


def _prompts(config: BanditTask) -> tuple[str, ...]:
    return tuple(tr("prompt {number}").format(number=p + 1) for p in range(config.prompts))


def _contexts(config: BanditTask, states: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name of every pair of prompt and state. The prompt is omitted if there is only one."""
    if config.prompts == 1:
        return states
    return tuple(f"{prompt}, {state}" for prompt in _prompts(config) for state in states)


def _share_of_right_decisions(config: BanditTask, tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
    right = np.resize(right_actions(config), tokens.shape[1])
    return np.asarray(((tokens == right) & mask).sum(axis=-1) / mask.sum(axis=-1))


def _max_length(config: BanditTask) -> int:
    return config.max_length


TASKS: Rows[LongTask] = Rows(
    "task",
    {
        "length": LongTask(
            build=_length,
            longest=_max_length,
            ends=(0.0, 1.0),
            right=lambda config, tokens, mask: np.asarray(tokens[:, 0] == 0, dtype=float),
        ),
        "chain": LongTask(build=_chain, longest=_max_length, ends=(0.0, 1.0), right=_share_of_right_decisions),
    },
    of_type(LongTask),
    "grpo_core.testing.tasks:CHECKS",
)
"""The tasks with several tokens. Every other landscape is a single decision."""
