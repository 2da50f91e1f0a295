"""The sentences of a race."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.panels.race.choices import FAIR
from app.panels.race.desk import Desk
from app.panels.race.lanes import spoken
from app.panels.race.plan import Plan
from app.panels.race.results import Results
from app.plotting.numbers import shown
from grpo_core.config import described_at
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble

BANDS = "Bands hold the middle half of the seeds."


def joined(names: Sequence[str]) -> str:
    """Names in a sentence: "A, B and C"."""
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else "".join(names)


def said(desk: Desk, wanted: Plan, remark: str, *, settling: bool) -> str:
    """What is to be known of a race, the most urgent first.

    Args:
        desk: where it is computed.
        wanted: the race that is asked for now.
        remark: what of the run's settings a race cannot take.
        settling: it will race again by itself in a moment.
    """
    results = desk.results
    if desk.busy:
        return f"Racing: {spoken(desk.running)}, {desk.done + 1} of {len(wanted.names)}."
    if desk.problem or results is None:
        return desk.problem
    if results.plan != wanted and not settling:
        return of_change(results.plan, wanted)
    told = of_same(results) or of_rest(results)
    return " ".join(part for part in (results.note, remark, told, FAIR[results.plan.fairness][1], BANDS) if part)


def of_same(results: Results) -> str:
    """Which algorithms coincide; empty where none do."""
    return " ".join(
        f"{joined([spoken(name) for name in group])} coincide: the same runs, seed by seed."
        for group in results.coinciding()
    )


def of_rest(results: Results) -> str:
    """What besides the algorithm still differs at equal step length; empty otherwise, and where nothing does."""
    if results.plan.fairness != "step_length":
        return ""
    told = []
    for path, sign in (("objective.beta", "β"), ("learner.mu", "μ")):
        of_lanes = {spoken(name): runs.settings.get(path) for name, runs in results.lanes.items()}
        if len(set(of_lanes.values())) > 1:
            highest = max(of_lanes.values())
            told.append(f"{sign} is {highest:g} for {joined([n for n, v in of_lanes.items() if v == highest])}")
    return f"Still different: {'; '.join(told)}." if told else ""


def of_change(then: Plan, now: Plan) -> str:
    """What has changed since the race that is shown."""
    try:
        paths = list(then.settings.differences(now.settings))
    except SettingsError:
        paths = []
    titles = ["task" if path == "task" else described_at(path).title.lower() for path in paths]
    changed = joined(titles) if len(titles) <= 3 else f"{', '.join(titles[:2])} and {len(titles) - 2} more settings"
    return f"Raced before a change of {changed}; press Race." if changed else "Another race is chosen; press Race."


def of_opening(name: str, runs: Ensemble, place: int) -> str:
    """What the run that opens repeats."""
    updates = len(runs.measures["reward"]) - 1
    return f"{spoken(name)}, seed {runs.seeds[place]}: {updates:,} updates repeat what the race computed, bit for bit."


def summary(results: Results) -> str:
    """The whole race in one sentence, for screen readers."""
    plan = results.plan
    best = [f"{name} {shown(reward)}" for name, reward in results.ranked()]
    if not best:
        return "No algorithm has come in yet."
    lost = [name for name, runs in results.lanes.items() if not np.isfinite(runs.measures["reward"][-1]).all()]
    broken = f" {joined(lost)} became non-finite." if lost else ""
    return (
        f"Race over {plan.seeds} seeds and {plan.updates:,} updates; median of the final reward, the best first: "
        f"{', '.join(best)}. {of_same(results)}{broken} {results.note}"
    ).strip()
