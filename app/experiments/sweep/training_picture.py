"""A sweep as a line chart of a measure over the updates of the runs at one position."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.experiments.sweep.grid_axis import name
from app.experiments.sweep.plan import ESTIMATOR, Sweep
from app.experiments.sweep.results import CENTRES, TITLES, UNITS, Spread, course
from app.experiments.sweep.state import LEAST, SOLID, SweepState, spread_columns
from app.plotting.axis import Scale
from app.plotting.line_data import NOTHING, Line, LinePicture, Tag
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

OWN_POINTS = 700
"""Maximum number of points drawn for the current run over training."""


def training_picture(state: SweepState, measure: str, *, every: bool) -> LinePicture:
    """Return a chart of the median KL or the mean reward over the updates of the runs at the selected position.

    ``every``: whether the runs at all other positions of the row are drawn behind them. The chart of the KL also
    contains the current run.
    """
    behind = _courses(state, measure) if every else []
    lines: list[Line] = []
    chosen_text, last = "", 10
    if state.runs is not None and state.results is not None:
        sweep, spread = state.results.sweep, course(state.runs, measure)
        chosen_text, last = name(_value(state.runs, sweep)), max(last, sweep.updates)
        label = f"{sweep.over.symbol} {chosen_text}"
        lines.append(_line(spread, measure, name="chosen", label=label, title=CENTRES[measure], z=14))
    look = {"label_meaning": "muted", "z": 6, "strength": 0.6, "listed": False}
    others = [
        _line(spread, measure, name=f"at {text}", label="" if text == chosen_text else text, **look)
        for text, spread in behind
    ]
    lines += [*others[:1], *others[:0:-1]]  # if not all labels fit, the outermost ones are kept
    own = state.own.course
    tags: tuple[Tag, ...] = ()
    if measure == "kl" and len(own):
        places, values = own.window(0, len(own), OWN_POINTS // 2)
        lines.append(Line(name="own", meaning="policy", x=places + 1, y=values))
        tags, last = (Tag(tr("this run"), float(len(own)), own.last, "policy"),), max(last, len(own))
    return LinePicture(
        x=Scale(label=tr("update"), low=0, high=last, whole=True),
        y=Scale(label=TITLES[measure], unit=UNITS[measure], low=0),
        lines=tuple(lines),
        span=(0.0, LEAST),
        tags=tags,
        places=(0.0, float(last)),
        make_table=lambda: _training_table(state, measure, behind),
        make_reading=lambda x: _training_reading(state, measure, round(x)),
    )


def _training_reading(state: SweepState, measure: str, update: int) -> list[tuple[str, str]]:
    """Return the values of the selected runs, and of the current run, after an update."""
    lines = [(tr("update {update}").format(update=update), "muted")]
    if state.runs is not None and 0 <= update < len(state.runs.measures[measure]):
        middle, low, high = (shown(float(limit[update])) for limit in course(state.runs, measure))
        text = tr("{centre}  {middle} ({low} to {high})").format(
            centre=CENTRES[measure], middle=middle, low=low, high=high
        )
        lines.append((text, measure))
    if measure == "kl" and 1 <= update <= len(state.own.course):
        value = shown(float(state.own.course.values[update - 1]))
        lines.append((tr("this run  {value}").format(value=value), "policy"))
    return lines


def training_title(state: SweepState, measure: str) -> str:
    if state.runs is None or state.results is None:
        return tr("{measure} over training").format(measure=TITLES[measure])
    sweep = state.results.sweep
    return tr("{measure} over training at {symbol} {value}").format(
        measure=TITLES[measure], symbol=sweep.over.symbol, value=name(_value(state.runs, sweep))
    )


def _courses(state: SweepState, measure: str) -> list[tuple[str, Spread]]:
    """Return the value and the curve of every computed position in the selected row."""
    results = state.results
    if results is None:
        return []
    runs = [(value, results.done.get((place, state.row))) for place, value in enumerate(results.sweep.over.values)]
    return [(name(value), course(found, measure)) for value, found in runs if found is not None]


def _line(spread: Spread, measure: str, **look: Any) -> Line:
    return Line(meaning=measure, style=SOLID, **look).over(np.arange(len(spread.middle), dtype=float), *spread)


def _value(runs: Ensemble, sweep: Sweep) -> object:
    if sweep.over.path != ESTIMATOR:
        return runs.settings.get(sweep.over.path)
    return next((v for v in sweep.over.values if not runs.settings.differences(sweep.at(v))), "")


def _training_table(state: SweepState, measure: str, behind: list[tuple[str, Spread]]) -> tuple[list[Column], Rows]:
    """Return one row per update: the selected runs, the current run, and the runs at every position drawn."""
    unit = UNITS[measure]
    columns = [
        Column("update", tr("Update", "noun"), decimals=0),
        *spread_columns(measure),
        Column("own", tr("This run"), unit=unit),
        *(Column(f"at {n}", tr("at {value}").format(value=text), unit=unit) for n, (text, _) in enumerate(behind)),
    ]
    here = course(state.runs, measure) if state.runs is not None else None
    own = state.own.course.values if measure == "kl" else NOTHING
    curves = [*(here or (NOTHING,) * 3), np.concatenate([[np.nan], own]), *(s.middle for _, s in behind)]
    rows = max(len(curve) for curve in curves) if here is not None or len(own) else 0
    return columns, [[n, *(float(c[n]) if n < len(c) else None for c in curves)] for n in range(rows)]
