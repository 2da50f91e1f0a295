"""Sentences about a sweep."""

from __future__ import annotations

import math
from dataclasses import replace

from app.experiments.sweep.choices import SweepChoice
from app.experiments.sweep.plan import BETA, Sweep, name
from app.experiments.sweep.results import DIVERGED, SweepResults, course
from app.plotting.numbers import shown
from app.workspace.view import View
from grpo_core.config import described_at
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.sweep import has_optimum, resting_beta, tilt_measures, why_no_optimum
from grpo_core.text import as_sentence, plural, tr

FOLDER = tr("A sweep trains the built-in model only. For a model from a folder, queue real runs.")


def of_plan(choice: SweepChoice) -> str:
    """Return text about what a sweep of the language model would train."""
    seeds = plural("{count} seed", "{count} seeds", choice.seeds).format(count=choice.seeds)
    return plural(
        "It trains at {symbol} {values}, with {seeds} and {updates:,} update each.",
        "It trains at {symbol} {values}, with {seeds} and {updates:,} updates each.",
        choice.updates,
    ).format(symbol=choice.over.symbol, values=choice.over.text, seeds=seeds, updates=choice.updates)


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


def of_run(view: View) -> str:
    """Return text that says where the current run is in the chart."""
    here = view.cursor.step
    if not here:
        return tr("At update 0 the policy is the reference: their KL is 0.")
    kl, beta = shown(float(view.run.series["kl"].values[here - 1])), view.step.objective.beta
    return tr("Update {here} of this run had β {beta:g}: the policy was then {kl} nats from the reference.").format(
        here=here, beta=beta, kl=kl
    )
