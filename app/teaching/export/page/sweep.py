"""Results of many runs on a page, with a slider over exactly the values for which runs were computed.

A lesson whose picture shows none gets runs over its knobs β, G and ε: one per seed at every value of the sweep's grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.experiments.sweep.plan import GRIDS
from app.plotting.numbers import full, is_missing, shown
from app.plotting.table_model import Column, Rows
from app.teaching.export.page.markup import Markup, element, table
from app.teaching.lessons.interactives.base import Interactive
from grpo_core.config import Settings, described_at
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble, band, ensembles
from grpo_core.experiments.sweep import grid
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import plural, tr


@dataclass(frozen=True, kw_only=True)
class SweepTable:
    """A chart's table, with a row for each value for which runs were computed.

    Attributes:
        columns: the values, followed by the results of the runs.
        rows: rows in the chart's order.
    """

    title: str
    columns: Sequence[Column]
    rows: Rows


def sweeps_of(picture: Interactive) -> Iterator[SweepTable]:
    """Yield the tables of many runs in a lesson's picture, without columns that contain no number."""
    for twin in picture.of_many_runs():
        columns, rows = twin.plot.table()
        kept = [n for n in range(len(columns)) if not n or any(not is_missing(row[n]) for row in rows)]
        if len(kept) > 1 and len(rows) > 1:
            yield SweepTable(
                title=twin.plot.title, columns=[columns[n] for n in kept], rows=[[row[n] for n in kept] for row in rows]
            )


def merged(older: SweepTable | None, newer: SweepTable) -> SweepTable:
    """Return two tables of the same chart merged, or the newer one if their runs have different values."""
    if older is None or [row[0] for row in older.rows] != [row[0] for row in newer.rows]:
        return newer
    again = {column.title for column in newer.columns}
    kept = [n for n, column in enumerate(older.columns) if column.title not in again]
    rows = [[*now, *(before[n] for n in kept)] for now, before in zip(newer.rows, older.rows, strict=True)]
    return SweepTable(title=newer.title, columns=[*newer.columns, *(older.columns[n] for n in kept)], rows=rows)


def sweep_section(sweep: SweepTable, place: int) -> Markup:
    """Return a table with a slider over its rows above it. The selected row is marked and described in words."""
    first, *others = sweep.columns
    rows = [
        element(
            "tr",
            element("th", _value(row[0]), scope="row"),
            *(element("td", shown(cell), title=full(cell)) for cell in row[1:]),
            data_said=_said(first, others, row),
        )
        for row in sweep.rows
    ]
    name = f"sweep-{place}"
    slider = element(
        "div",
        element("label", first.title, for_=name),
        element("input", type="range", id=name, min=0, max=len(sweep.rows) - 1, step=1, value=len(sweep.rows) // 2),
        element("output", "", for_=name),
        class_="slider",
    )
    heads = [column.title for column in sweep.columns]
    return element("div", slider, table(sweep.title, heads, rows, scrolls=True), class_="sweep")


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _said(first: Column, others: Sequence[Column], row: Sequence[object]) -> str:
    """Return a row as a sentence, for the slider and screen readers."""
    numbers = "; ".join(
        tr("{title} {value}").format(title=column.title, value=shown(cell))
        for column, cell in zip(others, row[1:], strict=True)
    )
    return tr("{title} {value}: {numbers}.").format(title=first.title, value=_value(row[0]), numbers=numbers)


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
    named = [predict.answer.quantity for predict in lesson.questions.values()]
    asked = sorted({one.action for one in named if one is not None and one.name == "probability" and one.action})
    offered: dict[str, Settings] = {}  # each knob with the settings under which it can first be turned
    for step in lesson.steps:
        for path in step.knobs:
            if path in KNOBS and not step.recorded:
                offered.setdefault(path, lesson.settings_of(step))
    for path, settings in offered.items():
        with suppress(SettingsError):
            yield knob_sweep(path, settings, updates, asked)


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
        Column("value", about.named),
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
