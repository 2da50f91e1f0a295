"""Training with many seeds, and what is read from the policies of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings


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
