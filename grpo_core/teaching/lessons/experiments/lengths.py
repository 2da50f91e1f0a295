"""Lengths of correct and wrong answers in the length toy, over many seeds, with exact expectations for every policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.bandit.simulate import never
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons.experiments.seeds import courses
from grpo_core.text import tr

ANSWER, RIGHT, WRONG = range(3)
"""States of the toy: before the answer, after a correct answer, after a wrong answer."""
UPDATES, SEEDS = 60, 64


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


def tried(settings: Settings, seeds: Sequence[int], *, poll: Callable[[], None] = never) -> Iterator[Lengths]:
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
