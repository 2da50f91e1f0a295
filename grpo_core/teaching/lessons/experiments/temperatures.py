"""Effects of temperature, measured on real groups.

These are the number of distinct answers, the share of groups with a signal, the mean reward, and the ratio at the first
pass if answers are scored at a different temperature from the one at which they were sampled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core import recompute
from grpo_core.advantages import advantages, equal_rewards
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import gather, places
from grpo_core.bandit.simulate import Batch, draw, start
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings, language_settings
from grpo_core.objective import evaluate
from grpo_core.progress import unpolled
from grpo_core.record import Step

TEMPERATURES = (
    0.1, 0.125, 0.16, 0.2, 0.25, 0.315, 0.4, 0.5, 0.63, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0, 10.0,
)  # fmt: skip # table, one row per line
"""Preferred numbers (ISO 3, R10): ten per decade, evenly spaced on a logarithmic axis to within one percent."""
LANGUAGE_TEMPERATURES = (0.1, 0.2, 0.5, 1.0, 1.6, 2.0, 3.15, 5.0)
"""Temperatures at which a language model is sampled."""
SEEDS = 8
"""Number of runs at each temperature. All temperatures use the same random numbers."""


def distinct(tokens: np.ndarray) -> np.ndarray:
    """Return the number of distinct completions in each group, (..., G, T) -> (...). Padding is −1."""
    number = tokens[..., 0]
    if tokens.shape[-1] > 1:  # completions are numbered first; a single token already is a number
        _, number = np.unique(tokens.reshape(-1, tokens.shape[-1]), axis=0, return_inverse=True)
    ordered = np.sort(number.reshape(tokens.shape[:-1]), axis=-1)
    return np.asarray((np.diff(ordered, axis=-1) > 0).sum(axis=-1) + 1)


def groups_at(settings: Settings, temperatures: Sequence[float]) -> dict[str, np.ndarray]:
    """Draw groups from a bandit's starting policy at each temperature, as in the first update of :data:`SEEDS` runs.

    Returns:
        Means over all groups drawn, (n,) each: of the number of ``distinct`` answers in a group, 1 to G, the share of
        ``live`` groups, whose rewards are not all equal, and of the ``reward``.

    Raises:
        SettingsError: the starting policy cannot be sampled from.
    """
    drawn = _drawn(settings, temperatures)
    rows = (len(temperatures), -1, settings.learner.group_size)
    answers = drawn.completions
    tokens = np.where(answers.mask, answers.tokens, -1)
    rewards = drawn.rewards.reshape(rows)
    return {
        "distinct": distinct(tokens.reshape(*rows, tokens.shape[-1])).mean(axis=-1),
        "live": 1 - equal_rewards(rewards).mean(axis=-1),
        "reward": rewards.mean(axis=(1, 2)),
    }


def groups_of(step: Step) -> tuple[float, float, float]:
    """Return the number of distinct answers in a group, the share of groups with a signal, and the mean reward.

    ``step`` is a recorded update with full groups.
    """
    rows = (-1, step.settings.learner.group_size, step.tokens.shape[-1])
    different = distinct(np.where(step.mask, step.tokens, -1).reshape(rows))
    return float(different.mean()), float(1 - recompute.dead_groups(step).mean()), float(step.rewards.mean())


def language_at(temperature: float, prompts: int = 32, seed: int = 0) -> Settings:
    """Return settings of a run of the bundled language model whose first update samples at ``temperature``."""
    return language_settings().replace(
        {"task.prompts": prompts, "learner.temperature": temperature, "task.held_out": 1, "seed": seed}
    )


def first_pass(settings: Settings, scored_at: Sequence[float]) -> dict[str, np.ndarray]:
    """Sample answers from a bandit's starting policy at the settings' temperature and score them at other temperatures.

    Returns:
        The mean ratio of the ``praised`` and of the ``punished`` tokens, those with a positive and with a negative
        advantage, and the share of them that are ``clipped`` before the policy has changed at all, (n,) each. NaN if
        there was no such token.

    Raises:
        SettingsError: the baseline is "given", for which there are no values here.
    """
    drawn = _drawn(settings, [settings.learner.temperature])
    goal = settings.objective.replace(beta=0.0, entropy_bonus=0.0, kl_in="loss")
    rewards = drawn.rewards.reshape(SEEDS, -1, settings.learner.group_size)
    advantage = np.asarray(advantages(goal, rewards)).reshape(drawn.rewards.shape)
    mask = drawn.completions.mask
    sampled = _scored(settings, drawn, settings.learner.temperature)
    up, down = (mask & (sign * advantage > 0)[..., None] for sign in (1, -1))
    means = []
    for temperature in scored_at:
        terms = evaluate(goal, _scored(settings, drawn, temperature), sampled, advantage, mask)
        means.append((_mean(terms.ratio, up), _mean(terms.ratio, down), _mean(terms.clipped, up | down)))
    return dict(zip(("praised", "punished", "clipped"), np.array(means).T, strict=True))


def _drawn(settings: Settings, temperatures: Sequence[float]) -> Batch:
    """Return the first batch of :data:`SEEDS` runs at each temperature. Runs with the same temperature are adjacent."""
    work = task(settings.bandit)
    seeds = range(settings.seed, settings.seed + SEEDS)
    each = np.repeat(np.asarray(temperatures, dtype=float), SEEDS)[:, None, None]
    dist = policy.log_probs(start(work, len(each)).logits, each)
    return draw(settings.learner, work, np.exp(dist), 1, Streams([*seeds] * len(temperatures)), unpolled)


def _scored(settings: Settings, drawn: Batch, temperature: float) -> np.ndarray:
    """Return log π of the sampled tokens at ``temperature``, (R, B, T)."""
    answers = drawn.completions
    dist = policy.log_probs(start(task(settings.bandit), len(answers.tokens)).logits, temperature)
    return np.where(answers.mask, gather(dist, places(answers.context, answers.tokens, dist.shape)), 0.0)


def _mean(values: np.ndarray, which: np.ndarray) -> float:
    return float(values[which].mean()) if which.any() else float("nan")
