"""Results of a sweep: final values, curves over training, the theoretical end points, and sentences about them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from app.experiments.controller import ExperimentResults
from app.experiments.sweep.plan import BETA, Sweep, name
from app.plotting.numbers import shown
from grpo_core.claims.claim import sentence
from grpo_core.claims.sweep import Between
from grpo_core.config import described_at
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble, band
from grpo_core.experiments.outcome import of_sweep, swept
from grpo_core.experiments.sweep import has_optimum, resting_beta, tilt_measures, why_no_optimum
from grpo_core.text import as_sentence, plural, tr

KNOWN: dict[str, Any] = {
    "objective.surrogate": "log_prob",
    "objective.baseline": "leave_one_out",
    "objective.std": "none",
    "objective.kl": "exact",
    "objective.kl_importance": False,
    "objective.kl_in": "loss",
    "learner.mu": 1,
    "learner.critic": False,
    "learner.resample_dead": False,
    "objective.dual_clip": None,
    "objective.entropy_bonus": 0.0,
    "optimizer.weight_decay": 0.0,
    "learner.staleness": 0,
}
"""Settings under which the optimum is known: REINFORCE with a leave-one-out baseline and the exact KL."""
FINE = 12
"""Number of points of a theoretical curve per interval of the grid."""


UNITS = {"kl": tr("nats"), "reward": ""}
TITLES = {"kl": "KL", "reward": tr("Reward")}
CENTRES = {"kl": tr("median"), "reward": tr("mean")}
"""Measure -> name of the statistic that is used as the centre of the seeds, as in the headline.

The KL uses the median, because the KL of a diverged run is infinite.
"""
DIVERGED = tr("at least half of the runs diverged there: their numbers overflowed, so there is no median")


class Spread(NamedTuple):
    """The centre of the seeds (:data:`CENTRES`) and the limits of their middle half, (n,) each.

    NaN if not yet computed.
    """

    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


class SweepResults(ExperimentResults):
    """The results of a sweep, added point by point.

    Attributes:
        done: (position, row) -> the runs of that point.
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(len(sweep.keys))
        self.sweep = sweep
        self.done: dict[tuple[int, int], Ensemble] = {}
        self._keys = sweep.keys
        self._final: dict[tuple[str, int, int], Spread] = {}
        self._optimum: dict[int, dict[str, np.ndarray]] = {}

    def take(self, result: Ensemble) -> None:
        self.done[self._keys[self.count]] = result
        self.count += 1

    @property
    def so_far(self) -> str:
        return plural(
            "Incomplete: {count} of {wanted} place.", "Incomplete: {count} of {wanted} places.", self.wanted
        ).format(count=self.count, wanted=self.wanted)

    @cached_property
    def _stated(self) -> str:
        """The claims about the sweep, of which there are none for fewer than two positions."""
        sweep = self.sweep
        if self.count < 2:
            return ""
        if sweep.base.is_language:
            last = np.concatenate([self.final("kl", row).middle for row in range(len(sweep.rows))])
            between = sentence(Between(least=float(last.min()), most=float(last.max())))
            return " ".join((between, tr("These are too few seeds to call a value better than another.")))
        names = {key: _place(sweep, *key) for key in self.done}
        data = swept(
            {names[key]: runs for key, runs in self.done.items()},
            [[names[place, row] for place in range(len(sweep.over.values))] for row in range(len(sweep.rows))],
        )
        told = of_sweep(data, in_order=sweep.over.numeric, smoothness=sweep.over.path != BETA)
        return " ".join(sentence(*claims) for claims in told)

    def final(self, measure: str, row: int = 0) -> Spread:
        """Return the spread of a measure after the last update, at every position."""
        key = (measure, row, self.count)
        if key not in self._final:
            known = [(place, self.done.get((place, row))) for place in range(len(self.sweep.over.values))]
            there = [place for place, runs in known if runs is not None]
            spread = np.full((3, len(known)), np.nan)
            if there:
                spread[:, there] = spread_of(
                    np.stack([self.done[place, row].counted(measure)[-1] for place in there]), measure
                )
            self._final[key] = Spread(*spread)
        return self._final[key]

    def optimum(self, row: int = 0) -> dict[str, np.ndarray]:
        """Return the theoretical optimum along the axis: "place", "kl" in nats and "reward", (n,) each.

        They are empty if theory provides none.
        """
        if row in self._optimum:
            return self._optimum[row]
        over, optima = self.sweep.over, []
        intervals = len(over) - 1
        for x in np.linspace(0, intervals, intervals * (FINE if over.path == BETA else 1) + 1):
            try:
                settings = self.sweep.at(over.value(float(x)), row)
            except SettingsError:
                continue
            if has_optimum(settings):
                best = tilt_measures(settings, resting_beta(settings))
                optima.append((float(x), best["kl"], best["reward"]))
        columns = np.array(optima, dtype=float).reshape(-1, 3).T
        self._optimum[row] = dict(zip(("place", "kl", "reward"), columns, strict=True))
        return self._optimum[row]

    def has_optimum(self) -> bool:
        return any(len(self.optimum(row)["place"]) for row in range(len(self.sweep.rows)))


def _place(sweep: Sweep, place: int, row: int) -> str:
    if sweep.across is None:
        return sweep.over.named(sweep.over.values[place])
    return tr("{symbol} {value} and {across} {value2}").format(
        symbol=sweep.over.symbol,
        value=name(sweep.over.values[place]),
        across=sweep.across.symbol,
        value2=name(sweep.rows[row]),
    )


def row_line(row: int) -> str:
    """Return the name of the line for a row, which is one value of the second setting."""
    return f"row {row}"


def spread_of(values: np.ndarray, measure: str) -> Spread:
    """Return the spread over the seeds, the last axis of ``values``."""
    median, low, high = band(values)
    middle = {"kl": median, "reward": values.mean(axis=-1)}[measure]
    return Spread(middle, low, high)


def titled(measure: str) -> str:
    """Return a measure's title with the name of the centre that is drawn, for an axis or a column."""
    return tr("{titles}, {centre}").format(titles=TITLES[measure], centre=CENTRES[measure])


def course(runs: Ensemble, measure: str) -> Spread:
    """Return the spread of a measure after each update, (U + 1,), beginning with update 0."""
    return spread_of(runs.counted(measure), measure)


FOLDER = tr("A sweep trains the built-in model only. For a model from a folder, queue real runs.")


def at_hand(runs: Ensemble | None, sweep: Sweep, value: object) -> str:
    """Return text about the KL and the reward that the runs at the selected position reach."""
    if runs is None:
        return tr("{symbol} {value} is being computed.").format(symbol=sweep.over.symbol, value=name(value))
    kl, reward = (tuple(float(limit[-1]) for limit in course(runs, measure)) for measure in ("kl", "reward"))
    if not (math.isfinite(kl[0]) and math.isfinite(reward[0])):
        return as_sentence(f"{sweep.over.named(value)}: {DIVERGED}")
    come = len(runs.measures["kl"]) - 1
    pattern = (
        plural(
            "{symbol} {value} after {come:,} of {updates:,} update: KL {kl} ({kl2}–{kl3}), mean reward {reward}.",
            "{symbol} {value} after {come:,} of {updates:,} updates: KL {kl} ({kl2}–{kl3}), mean reward {reward}.",
            sweep.updates,
        )
        if come < sweep.updates
        else tr("{symbol} {value}: KL {kl} ({kl2}–{kl3}), mean reward {reward}.")
    )
    text = pattern.format(
        symbol=sweep.over.symbol,
        value=name(value),
        come=come,
        updates=sweep.updates,
        kl=shown(kl[0]),
        kl2=shown(kl[1]),
        kl3=shown(kl[2]),
        reward=shown(reward[0]),
    )
    if runs.diverged.any():
        diverged, of = int(runs.diverged.sum()), len(runs.seeds)
        lost = plural(
            "{diverged} of {of} run diverged; its KL counts as infinite, its reward as the lowest possible.",
            "{diverged} of {of} runs diverged; their KL counts as infinite, their reward as the lowest possible.",
            of,
        )
        text = f"{text} {lost.format(diverged=diverged, of=of)}"
    if has_optimum(runs.settings):
        best = tilt_measures(runs.settings, resting_beta(runs.settings))
        optimum = plural(
            "Exact optimum: KL {best}, reward {best2}; after {updates:,} update the median KL is {gap} nats from it.",
            "Exact optimum: KL {best}, reward {best2}; after {updates:,} updates the median KL is {gap} nats from it.",
            come,
        )
        optimum = optimum.format(
            best=shown(best["kl"]), best2=shown(best["reward"]), updates=come, gap=shown(abs(kl[0] - best["kl"]))
        )
        text = f"{text}\n{optimum}"
    return text


def of_theory(results: SweepResults, row: int) -> str:
    """Return a message that says why no optimum is drawn, or an empty string if one is drawn."""
    if len(results.optimum(row)["place"]):
        return ""
    sweep = results.sweep
    return why_no_optimum(sweep.at(sweep.over.values[-1], row)) if sweep.over.path == BETA else ""


def of_change(sweep: Sweep, wanted: Sweep) -> str:
    """Return a message that says what the user has changed since a sweep was computed."""
    if replace(sweep, base=wanted.base) != wanted:
        return tr("Another sweep is chosen; press Sweep.")
    paths = list(sweep.base.differences(wanted.base))
    if "task" in paths:
        return tr("Computed with another kind of task; press Sweep.")
    settings = ", ".join(tr("“{title}”").format(title=described_at(path).title) for path in paths[:3])
    if len(paths) > 3:
        return plural(
            "Computed before a change of {settings} and {count} more setting; press Sweep.",
            "Computed before a change of {settings} and {count} more settings; press Sweep.",
            len(paths) - 3,
        ).format(settings=settings, count=len(paths) - 3)
    return tr("Computed before a change of {settings}; press Sweep.").format(settings=settings)


def summary(results: SweepResults, *, known: bool) -> str:
    """Return a summary of the sweep in a few sentences, for screen readers."""
    sweep = results.sweep
    kl, reward = results.final("kl"), results.final("reward")
    there = [place for place in range(len(sweep.over.values)) if kl.middle[place] == kl.middle[place]]
    if not there:
        return tr("No place of the sweep has been computed yet.")
    pattern = (
        plural(
            "REINFORCE with exact KL, after {updates:,} updates, median KL and mean reward of {seeds} seed.",
            "REINFORCE with exact KL, after {updates:,} updates, median KL and mean reward of {seeds} seeds.",
            sweep.seeds,
        )
        if known
        else plural(
            "After {updates:,} updates, median KL and mean reward of {seeds} seed.",
            "After {updates:,} updates, median KL and mean reward of {seeds} seeds.",
            sweep.seeds,
        )
    )
    ends = [
        tr("At {symbol} {value} KL is {kl} nats and reward {reward}.").format(
            symbol=sweep.over.symbol,
            value=name(sweep.over.values[place]),
            kl=shown(float(kl.middle[place])),
            reward=shown(float(reward.middle[place])),
        )
        for place in sorted({there[0], there[-1]})
    ]
    return " ".join((pattern.format(updates=sweep.updates, seeds=sweep.seeds), *ends))
