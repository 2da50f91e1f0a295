"""Summaries of many runs, computed in the training process, because thousands of quantiles would block the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, Train, band, ensembles
from grpo_core.experiments.race import race
from grpo_core.rounding import DOUBLE

OVER_SEEDS = ("signal_to_noise", "wrong_way")
"""Measures computed from all seeds together, which do not exist for individual seeds."""
COURSES = ("reward", "best_prob", "kl", "entropy", *OVER_SEEDS)
"""Measures whose course over training a digest contains."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Digest:
    """The summary of one algorithm of a race, for display in a window.

    Attributes:
        courses: measure of :data:`COURSES` -> its median after each update and the limits of the middle half of the
            seeds, (U + 1,) each, or a single array (U,) without update 0 for a measure of :data:`OVER_SEEDS`.
        numbers: its row of the ranking table, without the name.
        repeats: name of an earlier algorithm with the same runs; empty if there is none.
    """

    name: str
    runs: Ensemble
    courses: dict[str, tuple[np.ndarray, ...]]
    numbers: tuple[float | int, ...]
    repeats: str = ""


def raced(
    settings: Settings,
    names: Sequence[str],
    seeds: Sequence[int],
    updates: int,
    fairness: str,
    own_mu: bool = False,
    *,
    poll: Callable[[], None],
    train: Train = ensembles,
) -> Iterator[Digest]:
    """Run a race (:func:`grpo_core.experiments.race.race`), and summarise each algorithm as soon as its runs are
    finished.

    Raises:
        GrpoError: the race is not possible. Raised before anything is computed.
    """
    firsts: dict[str, Ensemble] = {}
    for name, runs in race(settings, names, seeds, updates, fairness, own_mu, poll=poll, train=train):
        repeats = next((first for first, others in firsts.items() if same(others, runs)), "")
        if not repeats:
            firsts[name] = runs
        yield Digest(
            name=name,
            runs=runs,
            courses={measure: _course(runs, measure) for measure in COURSES},
            numbers=_numbers(runs),
            repeats=repeats,
        )


def _course(runs: Ensemble, measure: str) -> tuple[np.ndarray, ...]:
    if measure not in OVER_SEEDS:
        return band(runs.counted(measure))
    share = getattr(runs, measure)
    return (np.where(np.isfinite(share), share, np.nan),)


def same(one: Ensemble, other: Ensemble) -> bool:
    """Return whether two algorithms produced the same runs, seed by seed and update by update, up to rounding."""
    if not np.allclose(one.policy, other.policy, rtol=0, atol=DOUBLE):
        return False
    measured = [(values, other.measures[name]) for name, values in one.measures.items()]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=DOUBLE, atol=DOUBLE) for a, b in measured)


def _numbers(runs: Ensemble) -> tuple[float | int, ...]:
    last = runs.counted("reward")[-1]
    reward, low, high = (float(limit) for limit in band(last))
    best, kl = (float(np.median(runs.counted(name)[-1])) for name in ("best_prob", "kl"))
    settings, updates = runs.settings, len(runs.measures["reward"]) - 1
    return (
        float(last.mean()),
        reward,
        runs.stuck,
        float(runs.diverged.mean()),
        low,
        high,
        best,
        kl,
        float(runs.wrong_way.mean()),
        float(runs.signal_to_noise[0]),
        settings.learner.mu,
        settings.learner.group_size,
        updates,
        int(runs.samples[-1]),
    )
