"""What is shown of an algorithm, made where it is computed: the window has no time for thousands of quantiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.panels.experiments.race.measures import MEASURES, Course, course
from grpo_core.experiments.ensemble import Ensemble, band

SAME = 1e-9
"""Runs whose every measure differs by no more are the same: what is left is rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Digest:
    """One algorithm of a race.

    Attributes:
        name: of it.
        runs: every seed.
        courses: by measure, over the updates.
        numbers: its row of the standing, without the name.
        repeats: the algorithm before it that has made the same runs, or empty.
    """

    name: str
    runs: Ensemble
    courses: dict[str, Course]
    numbers: tuple[object, ...]
    repeats: str = ""


def digested(race: Iterator[tuple[str, Ensemble]]) -> Iterator[Digest]:
    """One after the other, as they come."""
    firsts: dict[str, Ensemble] = {}
    for name, runs in race:
        repeats = next((first for first, others in firsts.items() if same(others, runs)), "")
        if not repeats:
            firsts[name] = runs
        yield Digest(
            name=name,
            runs=runs,
            courses={measure: course(runs, measure) for measure in MEASURES},
            numbers=_numbers(runs),
            repeats=repeats,
        )


def same(one: Ensemble, other: Ensemble) -> bool:
    """Whether two algorithms have made the same runs, seed by seed and update by update, but for rounding."""
    if not np.allclose(one.policy, other.policy, rtol=0, atol=SAME):
        return False
    measured = [(values, other.measures[name]) for name, values in one.measures.items()]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=SAME, atol=SAME) for a, b in measured)


def _numbers(runs: Ensemble) -> tuple[object, ...]:
    reward, low, high = (float(limit) for limit in band(runs.measures["reward"][-1]))
    best, kl = (float(np.median(runs.measures[name][-1])) for name in ("best_prob", "kl"))
    settings, updates = runs.settings, len(runs.measures["reward"]) - 1
    return (
        reward, low, high, best, kl, runs.stuck, float(runs.wrong_way.mean()), float(runs.signal_to_noise[0]),
        settings.learner.mu, settings.learner.group_size, updates, int(runs.samples[-1]),
    )  # fmt: skip
