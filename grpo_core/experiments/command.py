"""Races and sweeps on the command line: a table on the screen, every curve as CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from grpo_core.assignments import settings_from
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import MEASURES, band
from grpo_core.experiments.race import FAIRNESS, LOCAL_PEAK, SIX, race
from grpo_core.experiments.sweep import sweep, tilt_kl

Curves = dict[str, dict[str, np.ndarray]]
"""Label -> measure -> (U + 1, S)."""


def run_sweep(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Runs the bandit under every value of one setting, with many seeds each."""
    settings = _settings(options)
    path, equals, text = options.over.partition("=")
    if not equals:
        raise SettingsError("--over", options.over, "write a setting and its values, such as objective.beta=0,0.1,1")
    values = [settings_from(None, [f"{path}={value}"], settings).get(path) for value in text.split(",") if value]
    done = sweep(settings, path, values, seeds=range(options.seeds), updates=options.updates, poll=poll)
    curves = {
        f"{path}={value}": {name: done.measures[name][:, place] for name in MEASURES}
        for place, value in enumerate(values)
    }
    _table(curves, [_optimum(settings, path, value) for value in values])
    _written(options.out, curves)
    return 0


def run_race(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Lets algorithms race over the same seeds on the same landscape."""
    settings = _settings(options)
    if options.local_peak:
        settings = settings.replace(LOCAL_PEAK)
    lanes = race(
        settings, options.algorithm or SIX, seeds=range(options.seeds), updates=options.updates,
        fairness=options.fairness, poll=poll,
    )  # fmt: skip
    curves = {lane.name: lane.measures for lane in lanes}
    notes = [
        f"{lane.samples[-1]:,} samples, μ {lane.settings.learner.mu}, {100 * lane.stuck:.0f} % stuck, "
        f"{100 * lane.wrong_way.mean():.0f} % of steps the wrong way"
        for lane in lanes
    ]
    _table(curves, notes)
    _written(options.out, curves)
    return 0


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands ``sweep`` and ``race``; ``add`` makes a parser from a name, a help text and what it runs."""
    one = add("sweep", "run the bandit over the values of a setting, many seeds at once", run_sweep)
    one.add_argument(
        "--over", default="objective.beta=0,0.01,0.03,0.1,0.2,0.3,0.5,0.7,1", metavar="SETTING=V,V,…",
        help="what differs (default a grid of β)",
    )  # fmt: skip
    two = add("race", "let algorithms race over the same seeds", run_race)
    two.add_argument("--algorithm", action="append", metavar="NAME", help="a preset; may be repeated (default six)")
    two.add_argument("--fairness", choices=FAIRNESS, default="updates", help="what is equal for all")
    two.add_argument("--local-peak", action="store_true", help="two peaks, and a start that leans to the lower one")
    for parser in (one, two):
        parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="change a setting")
        parser.add_argument("--seeds", type=int, default=64, metavar="N", help="runs of each (default 64)")
        parser.add_argument("--updates", type=int, default=200, metavar="N", help="of each run (default 200)")
        parser.add_argument("--out", metavar="FILE", help="write every curve as CSV")


def _settings(options: argparse.Namespace) -> Settings:
    if options.seeds < 1 or options.updates < 1:
        raise SettingsError("--seeds and --updates", min(options.seeds, options.updates), "give numbers from 1 on")
    return settings_from(None, options.set, Settings().replace({"learner.mu": 1}))


def _optimum(settings: Settings, path: str, value: object) -> str:
    """What theory says of the KL where the policy is pulled by its exact gradient."""
    exact = settings.objective.surrogate == "log_prob" and settings.objective.kl == "exact"
    if path != "objective.beta" or not exact or not isinstance(value, (int, float)) or value <= 0:
        return ""
    return f"KL of the exponential tilt {tilt_kl(settings, float(value)):.3f}"


def _table(curves: Curves, notes: Sequence[str]) -> None:
    width = max(map(len, curves))
    print(f"{'':{width}}  reward after the last update   KL      best action  (median, middle half of the seeds)")
    for (label, measures), note in zip(curves.items(), notes, strict=True):
        middle, low, high = (x[-1] for x in band(measures["reward"]))
        kl, best = (float(np.median(measures[name][-1])) for name in ("kl", "best_prob"))
        print(f"{label:{width}}  {middle:.3f}  ({low:.3f} to {high:.3f})        {kl:.3f}   {best:.3f}        {note}")


def _written(out: str | None, curves: Curves) -> None:
    if out is None:
        return
    with Path(out).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("run", "update", "measure", "median", "low", "high"))
        writer.writerows(_rows(curves))
    print(f"{out} holds every curve.", file=sys.stderr)


def _rows(curves: Curves) -> Iterator[tuple[object, ...]]:
    for label, measures in curves.items():
        for name, values in measures.items():
            for update, (middle, low, high) in enumerate(zip(*band(values), strict=True)):
                yield label, update, name, repr(float(middle)), repr(float(low)), repr(float(high))
