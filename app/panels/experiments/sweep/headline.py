"""What came of a sweep, in words computed from its runs: where reward is highest, what KL does, where training goes
most smoothly, what still climbs."""

from __future__ import annotations

import numpy as np

from app.panels.experiments.sweep.grid_axis import name
from app.panels.experiments.sweep.plan import BETA, Sweep
from app.panels.experiments.sweep.results import SweepResults
from app.plotting.numbers import shown
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

LEVEL = 0.005
"""Final rewards (medians over the seeds) that differ by less count as equal."""
CLIMBING, LAST = 0.01, 0.1
"""Runs still climb if the last tenth of their updates has raised their median reward by more than this."""
NAMED = 3
"""Places that are named one by one; of more it is said how many."""


def headline(results: SweepResults) -> str:
    """The result of a sweep that is complete; empty before, and where fewer than two places have finite medians."""
    sweep = results.sweep
    rewards = np.stack([results.final("reward", row).middle for row in range(len(sweep.rows))])  # (rows, places)
    if not results.complete or np.isfinite(rewards).sum() < 2:
        return ""
    row = int(np.unravel_index(np.nanargmax(rewards), rewards.shape)[0])
    reward, kl = results.final("reward", row), results.final("kl", row)
    there = np.flatnonzero(np.isfinite(reward.middle) & np.isfinite(kl.middle))
    if len(there) < 2:
        return ""
    parts = (
        _of_reward(sweep, row, reward.middle, there),
        _of_kl(kl.middle[there], in_order=sweep.over.places.numeric),
        "" if sweep.over.path == BETA else _of_falls(results, row, there),
        _of_climbing(results, row, there),
    )
    return " ".join(part for part in parts if part)


def _of_reward(sweep: Sweep, row: int, reward: np.ndarray, there: np.ndarray) -> str:
    """Where reward is highest along the row that holds the best place, and where it is lowest."""
    best, worst = (int(there[pick(reward[there])]) for pick in (np.argmax, np.argmin))
    if reward[best] - reward[worst] < LEVEL:
        return tr("Reward ends level at {reward}, whatever {symbol} is.").format(
            reward=shown(float(reward[best])), symbol=sweep.over.symbol
        )
    return tr("Reward is highest at {best} ({reward}) and lowest at {worst} ({least}).").format(
        best=_place(sweep, best, row), reward=shown(float(reward[best])),
        worst=_place(sweep, worst, row), least=shown(float(reward[worst])),
    )  # fmt: skip


def _of_kl(kl: np.ndarray, *, in_order: bool) -> str:
    """What KL, (n,) in nats, does from the first place to the last where these are numbers; else between what it is."""
    ends = (kl[0], kl[-1]) if in_order else (kl.min(), kl.max())
    first, last = (shown(float(end)) for end in ends)
    if not in_order:
        return tr("KL lies between {first} and {last} nats.").format(first=first, last=last)
    if kl[-1] < kl[0]:
        return tr("From left to right KL falls from {first} to {last} nats.").format(first=first, last=last)
    return tr("From left to right KL rises from {first} to {last} nats.").format(first=first, last=last)


def _of_falls(results: SweepResults, row: int, there: np.ndarray) -> str:
    """Where training goes most smoothly: where the expected reward of a run loses least on its way, and where most."""
    lost = np.array([falls(results.done[place, row]) for place in there.tolist()])
    if lost.max() - lost.min() < LEVEL:
        return ""
    best, worst = int(lost.argmin()), int(lost.argmax())
    return tr("Smoothest is {best} (all falls of reward together: {least}), roughest {worst} ({most}).").format(
        best=_place(results.sweep, int(there[best]), row), least=shown(float(lost[best])),
        worst=_place(results.sweep, int(there[worst]), row), most=shown(float(lost[worst])),
    )  # fmt: skip


def falls(runs: Ensemble) -> float:
    """By how much the expected reward of a run falls in all, added up over its updates: median over the seeds."""
    steps = np.diff(runs.measures["reward"], axis=0)  # (U, S)
    return float(np.median(-np.minimum(steps, 0.0).sum(axis=0)))


def _of_climbing(results: SweepResults, row: int, there: np.ndarray) -> str:
    """Which places of the row had not come to rest; empty for none."""
    sweep = results.sweep
    climbing = [place for place in there.tolist() if _climbs(results.done[place, row])]
    if not climbing:
        return ""
    if len(climbing) > NAMED:
        return tr("Still climbing after {updates:,} updates: {count} of {all} places.").format(
            updates=sweep.updates, count=len(climbing), all=len(sweep.over.values)
        )
    return tr("Still climbing after {updates:,} updates: {places}.").format(
        updates=sweep.updates, places=", ".join(_value(sweep, place) for place in climbing)
    )


def _climbs(runs: Ensemble) -> bool:
    course = np.median(runs.measures["reward"], axis=-1)  # (U + 1,)
    return bool(course[-1] - course[-1 - max(round(LAST * (len(course) - 1)), 1)] > CLIMBING)


def _value(sweep: Sweep, place: int) -> str:
    return f"{sweep.over.symbol} {name(sweep.over.values[place])}"


def _place(sweep: Sweep, place: int, row: int) -> str:
    if sweep.across is None:
        return _value(sweep, place)
    return tr("{symbol} {value} and {across} {value2}").format(
        symbol=sweep.over.symbol, value=name(sweep.over.values[place]),
        across=sweep.across.symbol, value2=name(sweep.rows[row]),
    )  # fmt: skip
