"""Many runs for a lesson's knobs β, G and ε: one run per seed at every value of the sweep's grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from app.experiments.sweep.plan import GRIDS
from app.plotting.table_model import Column
from app.teaching.export.page.sweep import SweepTable
from grpo_core.config import Settings, described_at
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble, band, ensembles
from grpo_core.experiments.sweep import grid
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import plural, tr

KNOBS = ("objective.beta", "learner.group_size", "objective.clip_high")
"""Knobs of a lesson for which its page shows the results of many runs."""
SEEDS = range(16)
LEAST, MOST = 20, 200
"""Minimum and maximum number of updates of each run, which otherwise has as many as the lesson shows."""


def knob_sweeps(lesson: Lesson) -> Iterator[SweepTable]:
    """Yield a table for each knob in :data:`KNOBS`, with the settings of the first step of ``lesson`` that has it.

    Language models and tasks of several decisions are omitted, because their runs cannot be computed side by side.
    """
    updates = min(max(LEAST, *(step.update for step in lesson.steps)), MOST)
    for path, settings in _offered(lesson).items():
        with suppress(SettingsError):
            yield knob_sweep(path, settings, updates, _asked(lesson))


def _offered(lesson: Lesson) -> Mapping[str, Settings]:
    """Return a mapping from each knob to the settings under which it can first be turned."""
    found: dict[str, Settings] = {}
    for step in lesson.steps:
        for path in step.knobs:
            if path in KNOBS and not step.recorded:
                found.setdefault(path, lesson.settings_of(step))
    return found


def _asked(lesson: Lesson) -> list[int]:
    """Return the actions, counted from 0, whose probabilities the lesson asks about."""
    named = [step.predict.answer.quantity for step in lesson.steps if step.predict is not None]
    return sorted({one.action for one in named if one is not None and one.name == "probability" and one.action})


def knob_sweep(path: str, settings: Settings, updates: int, actions: list[int]) -> SweepTable:
    """Return the results of real runs at every value of one setting, including its current value.

    Args:
        path: dotted path of the setting.
        settings: settings common to all runs; their seeds are :data:`SEEDS`.
        actions: actions, counted from 0, whose final mean probability is included.

    Raises:
        SettingsError: such runs cannot be computed side by side.
    """
    values = sorted({*GRIDS[path], settings.get(path)})
    about = described_at(path)
    columns = [
        Column("value", f"{about.title} {about.symbol}".strip()),
        Column("reward", tr("reward, median")),
        Column("low", tr("reward, 25%")),
        Column("high", tr("reward, 75%")),
        Column("kl", tr("KL, median")),
        Column("stuck", tr("share of runs off the best action")),
        *(Column(f"action{a}", tr("mean π({action})").format(action=a + 1)) for a in actions),
    ]
    points = grid(settings, {path: values})
    rows = [
        [value, *_row(runs, actions)] for value, runs in zip(values, ensembles(points, SEEDS, updates), strict=True)
    ]
    title = plural(
        "{count} run of {updates} updates at each value of {setting}",
        "{count} runs of {updates} updates at each value of {setting}",
        len(SEEDS),
    ).format(count=len(SEEDS), updates=updates, setting=columns[0].title)
    return SweepTable(title=title, columns=columns, rows=rows)


def _row(runs: Ensemble, actions: list[int]) -> list[Any]:
    middle, low, high = (float(one[-1]) for one in band(runs.counted("reward")))
    kl = float(np.median(runs.counted("kl")[-1]))
    return [middle, low, high, kl, runs.stuck, *(float(runs.policy[:, 0, a].mean()) for a in actions)]
