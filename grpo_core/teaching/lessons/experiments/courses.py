"""Training with many seeds on the chain of decisions and on the length toy, with exact expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import never, start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import Task, right_actions, task
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.text import tr


def courses(
    settings: Settings,
    seeds: Sequence[int],
    updates: int,
    read: Callable[[np.ndarray], Sequence[np.ndarray]],
    poll: Callable[[], None],
) -> tuple[np.ndarray, ...]:
    """Train with every seed, and return what ``read`` says of the policies from update 0 on, (U + 1, S) each.

    Args:
        seeds: seeds to train with, (S,).
        updates: number of updates, U.
        read: returns arrays (S,) for the policies, given as probabilities (S, C, A).
        poll: called before each pass; an exception raised by it ends the training.
    """
    work, streams = task(settings.bandit), Streams(seeds)
    state, readings = start(work, streams.runs), []
    for number in range(updates + 1):
        prob = np.exp(policy.log_probs(state.logits, settings.learner.temperature))[: len(seeds)]
        readings.append(read(prob))
        if number < updates:
            state = update(settings, work, state, streams, poll).state
    return tuple(np.array(values) for values in zip(*readings, strict=True))


CREDITS = ("outcome", "process")
SEEDS = 64
ENOUGH = 0.9
"""Share of correct decisions at which the chain counts as learned."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainProgress:
    """Progress of every seed in learning the chain, starting with update 0.

    Attributes:
        right: expected share of correct decisions, (U + 1, S).
        paid: average reward of a decision from the step checker, (U + 1, S).
    """

    right: np.ndarray
    paid: np.ndarray

    def needed(self) -> np.ndarray:
        """Return how many updates each seed needs until its share is :data:`ENOUGH`, (S,). Infinite if it never is."""
        there = self.right >= ENOUGH
        return np.where(there.any(axis=0), there.argmax(axis=0), np.inf)

    def median_needed(self) -> float:
        """Return the median of :meth:`needed` over the seeds. Infinite if half of the seeds never learn the chain."""
        return float(np.median(self.needed()))


def chain_courses(
    settings: Settings, updates: int, seeds: Sequence[int], *, poll: Callable[[], None] = never
) -> Iterator[ChainProgress]:
    """Yield the progress of training on the chain of decisions with every seed.

    Args:
        updates: number of updates, U.
        seeds: seeds to train with, (S,).
        poll: called before each pass; an exception raised by it ends the training.

    Raises:
        SettingsError: the task is not the chain of decisions.
    """
    if settings.is_language or settings.bandit.landscape != "chain":
        raise SettingsError("task.landscape", settings.task, tr("only the chain rewards steps"))
    work = task(settings.bandit)
    pays = paid_for(work)
    right = (np.arange(work.longest)[:, None], right_actions(settings.bandit)[:, None])

    def read(prob: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        prob = prob.reshape(len(seeds), -1, *pays.shape)  # (S, P, T, A)
        return prob[:, :, right[0], right[1]].mean(axis=(1, 2, 3)), (prob * pays).sum(-1).mean(axis=(1, 2))

    shares, pay = courses(settings, seeds, updates, read, poll)
    yield ChainProgress(right=shares, paid=pay)


def paid_for(work: Task) -> np.ndarray:
    """Return the reward of every action at every decision, (T, A), as computed by the step checker itself."""
    assert work.step_rewards is not None
    actions = len(work.vocabulary)
    tokens = np.broadcast_to(np.arange(actions)[:, None], (1, actions, work.longest))  # one completion per action
    paid = work.step_rewards(np.zeros(actions, dtype=np.intp), tokens, np.full(tokens.shape, True))
    return np.asarray(paid[0].T)


ANSWER, RIGHT, WRONG = range(3)
"""States of the toy: before the answer, after a correct answer, after a wrong answer."""
UPDATES = 60
"""Number of updates for which lengths are trained."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """Results of every seed, from update 0 to U = :data:`UPDATES`.

    Attributes:
        right, wrong: expected number of tokens of a correct and of a wrong answer, (U + 1, S).
        chance: probability of a correct answer, (U + 1, S).
    """

    right: np.ndarray
    wrong: np.ndarray
    chance: np.ndarray

    def growth(self, which: str) -> float:
        """Return the growth of the median length of "right" or "wrong" answers since update 0, in tokens."""
        lengths = getattr(self, which)
        return float(np.median(lengths[-1]) - np.median(lengths[0]))


def expected_length(more: np.ndarray, longest: int) -> np.ndarray:
    """Return the expected length of an answer that goes on after each token with probability ``more`` (...).

    ``longest`` is the maximum length T. The answer itself is one token, and position k + 2 is reached with probability
    more^k: 1 + Σ more^k, k = 0 … T − 2.
    """
    return np.asarray(1 + np.sum(more[..., None] ** np.arange(longest - 1), axis=-1))


def length_courses(settings: Settings, seeds: Sequence[int], *, poll: Callable[[], None] = never) -> Iterator[Lengths]:
    """Yield the lengths of all answers after training with every seed.

    Args:
        settings: settings of the length toy.
        seeds: seeds to train with, (S,).
        poll: called before each pass; an exception raised by it ends the training.

    Raises:
        SettingsError: the task is not the length toy.
    """
    if settings.is_language or settings.bandit.landscape != "length":
        raise SettingsError("task.landscape", settings.task, tr("only the length toy has answers of variable length"))

    def read(prob: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        state = prob[:, :, 0].reshape(len(seeds), -1, 3)  # the first action, in each prompt and state
        lengths = expected_length(state, settings.bandit.max_length).mean(axis=1)
        return lengths[:, RIGHT], lengths[:, WRONG], state[..., ANSWER].mean(axis=1)

    right, wrong, chance = courses(settings, seeds, UPDATES, read, poll)
    yield Lengths(right=right, wrong=wrong, chance=chance)
