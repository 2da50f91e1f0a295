"""Training on the chain of decisions with outcome or step rewards, over many seeds, with exact expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.bandit.simulate import never
from grpo_core.bandit.tasks import Task, right_actions, task
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons.experiments.seeds import courses
from grpo_core.text import tr

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


def tried(
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
