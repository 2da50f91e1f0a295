"""Training with many seeds on the chain of decisions and on the length toy, with exact expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import Task, right_actions, task
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.progress import unpolled
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


def needed(right: np.ndarray) -> np.ndarray:
    """Return how many updates each seed needs until its share of correct decisions is :data:`ENOUGH`, (S,).

    ``right`` are the shares from update 0 on, (U + 1, S). The result is infinite if that share is never reached.
    """
    there = right >= ENOUGH
    return np.where(there.any(axis=0), there.argmax(axis=0), np.inf)


def chain_courses(
    settings: Settings, updates: int, seeds: Sequence[int], *, poll: Callable[[], None] = unpolled
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the progress of training on the chain of decisions with every seed, from update 0 on.

    It has the expected share of ``right`` decisions, and the average reward of a decision ``paid`` by the step checker,
    (U + 1, S) each. The arguments are those of :func:`courses`.

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
    yield {"right": shares, "paid": pay}


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


def expected_length(more: np.ndarray, longest: int) -> np.ndarray:
    """Return the expected length of an answer that goes on after each token with probability ``more`` (...).

    ``longest`` is the maximum length T. The answer itself is one token, and position k + 2 is reached with probability
    more^k: 1 + Σ more^k, k = 0 … T − 2.
    """
    return np.asarray(1 + np.sum(more[..., None] ** np.arange(longest - 1), axis=-1))


def length_courses(
    settings: Settings, seeds: Sequence[int], *, poll: Callable[[], None] = unpolled
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the lengths of all answers after training with every seed, from update 0 to U = :data:`UPDATES`.

    They are the expected numbers of tokens of a ``right`` and of a ``wrong`` answer, and the ``chance`` of a right one,
    (U + 1, S) each. The arguments are those of :func:`courses`.

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
    yield {"right": right, "wrong": wrong, "chance": chance}
