"""Samples for the lesson on temperature: groups of the bandit, and groups of the language model from a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np

from app.jobs.job_process import language_job
from app.jobs.runner import Poll
from app.plotting.line_data import Line
from app.plotting.numbers import share, shown
from grpo_core.config import Settings
from grpo_core.teaching.lessons.experiments.temperatures import (
    LANGUAGE_TEMPERATURES,
    TEMPERATURES,
    FirstPass,
    Groups,
    first_pass,
    groups_at,
    groups_of,
    language_at,
)
from grpo_core.text import tr

DISTINCT = Line(name=tr("different answers in a group"), meaning="entropy")
LIVE = Line(name=tr("groups that live"), meaning="policy")
REWARD = Line(name=tr("mean reward"), meaning="reward")
PRAISED, PUNISHED = (
    Line(name=tr("praised"), label=tr("praised"), meaning="push_up"),
    Line(name=tr("punished"), label=tr("punished"), meaning="push_down"),
)
CLIPPED = Line(name=tr("clipped"), meaning="clipped")


def grid(settings: Settings) -> dict[str, np.ndarray]:
    """Return the measures of groups at every temperature of the grid, by name.

    The temperature in ``settings`` is ignored.
    """
    return _grid(settings.replace({"learner.temperature": 1.0}))


@lru_cache(maxsize=16)
def _grid(settings: Settings) -> dict[str, np.ndarray]:
    return _named(groups_at(settings, TEMPERATURES))


@lru_cache(maxsize=64)
def at(settings: Settings) -> dict[str, float]:
    """Return the measures of groups at the temperature in ``settings``."""
    groups = _named(groups_at(settings, [settings.learner.temperature]))
    return {name: float(values[0]) for name, values in groups.items()}


@lru_cache(maxsize=64)
def scored(settings: Settings) -> dict[str, np.ndarray]:
    """Return the measures of the first pass for answers scored at every temperature of the grid."""
    return _of_pass(first_pass(settings, TEMPERATURES))


@lru_cache(maxsize=64)
def scored_here(settings: Settings, temperature: float) -> dict[str, float]:
    """Return the measures of the first pass for answers scored at ``temperature``."""
    return {name: float(value[0]) for name, value in _of_pass(first_pass(settings, [temperature])).items()}


def _named(groups: Groups) -> dict[str, np.ndarray]:
    return {DISTINCT.name: groups.distinct, LIVE.name: groups.live, REWARD.name: groups.reward}


def _of_pass(found: FirstPass) -> dict[str, np.ndarray]:
    return {PRAISED.name: found.praised, PUNISHED.name: found.punished, CLIPPED.name: found.clipped}


def language_groups(seed: int, poll: Poll) -> Iterator[tuple[float, tuple[float, float, float]]]:
    """Yield (T, measures of its groups) for the shipped language model, sampled in a process, for each temperature.

    Raises:
        GrpoError: the process has ended.
        Cancelled: raised by ``poll``.
    """
    points = tuple(language_at(temperature, seed=seed) for temperature in LANGUAGE_TEMPERATURES)
    updates = language_job("first_updates", points, poll=poll)
    for temperature, step in zip(LANGUAGE_TEMPERATURES, updates, strict=True):
        yield temperature, groups_of(step)


def sentence_of_groups(settings: Settings) -> str:
    """Return a sentence about the bandit's groups at the temperature in ``settings``."""
    here = at(settings)
    return tr(
        "T = {temperature}: {different} of {size} answers in a group differ, {live} of the groups live, "
        "mean reward {reward}."
    ).format(
        temperature=f"{settings.learner.temperature:.3g}",
        different=shown(here[DISTINCT.name], 1),
        size=settings.learner.group_size,
        live=share(here[LIVE.name]),
        reward=shown(here[REWARD.name], 2),
    )


def sentence_of_scoring(settings: Settings, scored_at: float) -> str:
    """Return a sentence about the first pass for answers scored at another temperature."""
    here = scored_here(settings, scored_at)
    return tr(
        "Sampled at T = {sampled}, scored at {scored}: the first ratio is {up} for praised answers and {down} for "
        "punished ones; {clipped} of them are clipped."
    ).format(
        sampled=f"{settings.learner.temperature:.3g}",
        scored=f"{scored_at:g}",
        up=shown(here[PRAISED.name], 2),
        down=shown(here[PUNISHED.name], 2),
        clipped=share(here[CLIPPED.name]),
    )


def sentence_of_model(found: Mapping[str, np.ndarray]) -> str:
    """Return a sentence about the language model's groups. Each array in ``found`` is (n,)."""
    live, reward = found[LIVE.name], found[REWARD.name]
    best = int(np.nanargmax(live))
    return tr(
        "The language model's groups live most often at T = {best}: {live}, mean reward {reward}. At {cold} it is "
        "{cold_live}, {cold_reward}."
    ).format(
        best=f"{TEMPERATURES[best]:g}",
        live=share(float(live[best])),
        reward=shown(float(reward[best]), 2),
        cold=f"{TEMPERATURES[0]:g}",
        cold_live=share(float(live[0])),
        cold_reward=shown(float(reward[0]), 2),
    )
