"""The expected step of one update, over all possible groups weighted by their probabilities."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from grpo_core.bandit.layout import runs_last
from grpo_core.bandit.sampling import Batch
from grpo_core.bandit.simulate import State, start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tabular_policy import Completions, log_probs
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.text import plural

MOST_GROUPS = 20_000
"""Maximum number of enumerated groups."""


def expected_step(settings: Settings, logits: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Return −E[d loss / d logits] of the first pass, (A,), over all A^G groups, for one prompt and one decision.

    Args:
        settings: settings under which ``update`` computes the gradient of every group.
        logits: logits of the policy, (A,).
        reference: logits of the reference policy, (A,); the task's starting policy by default.

    Raises:
        SettingsError: the task has several prompts or decisions, or there are too many groups to enumerate.
    """
    work, size, actions = task(settings.bandit), settings.learner.group_size, len(logits)
    if work.action_rewards is None or len(work.action_rewards) != 1 or work.action_rewards.shape[1] != actions:
        raise SettingsError(
            "task",
            settings.bandit.landscape,
            plural(
                "one prompt with {actions} action is needed", "one prompt with {actions} actions is needed", actions
            ).format(actions=actions),
        )
    if actions**size > MOST_GROUPS:
        raise SettingsError(
            "group_size",
            size,
            plural(
                "{actions} action allows at most {most_groups:,} groups here",
                "{actions} actions allow at most {most_groups:,} groups here",
                actions,
            ).format(actions=actions, most_groups=MOST_GROUPS),
        )
    groups = np.array(list(product(range(actions), repeat=size)))  # (A^G, G)
    streams = Streams(range(len(groups)))
    fresh = start(work, streams.runs)
    state = State(step=0, logits=_in_every_run(logits, streams.runs), moments=fresh.moments, critic=fresh.critic)
    tokens = runs_last(groups[:, :, None])
    mask = np.ones_like(tokens, dtype=bool)
    batch = Batch(
        completions=Completions(tokens=tokens, mask=mask, context=np.zeros_like(tokens)),
        rewards=runs_last(work.reward(np.zeros(size, dtype=np.intp), tokens, mask)),
        attempt=np.zeros((len(groups), 1), dtype=np.intp),
        redrawn=np.zeros(len(groups), dtype=np.intp),
    )
    temperature = settings.learner.temperature
    ref = None if reference is None else log_probs(_in_every_run(reference, streams.runs), temperature)
    once = settings.replace({"learner.mu": 1})
    gradient = update(once, work, state, streams, batch=batch, reference=ref).gradient[0][:, 0]  # (A^G, A)
    chance = np.exp(log_probs(logits, temperature))[groups].prod(axis=-1)
    return np.asarray(-(chance[:, None] * gradient).sum(axis=0))


def slope(value: Callable[[np.ndarray], np.ndarray], logits: np.ndarray, width: float = 1e-5) -> np.ndarray:
    """Return d value / d logits (A,) by central differences of ``value``, a function from log π (..., A) to (...)."""
    shifts = width * np.eye(len(logits))
    above, below = (value(log_probs(logits + way * shifts, 1.0)) for way in (1, -1))
    return np.asarray((above - below) / (2 * width))


def _in_every_run(row: np.ndarray, runs: int) -> np.ndarray:
    return runs_last(np.broadcast_to(row, (runs, 1, len(row))))
