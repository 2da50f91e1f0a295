"""A sweep as a line chart of a measure against the swept setting."""

from __future__ import annotations

import numpy as np

from app.experiments.sweep.chart import EDGE
from app.experiments.sweep.grid_axis import name
from app.experiments.sweep.own_run import OwnRun
from app.experiments.sweep.real_runs import RealRuns
from app.experiments.sweep.results import TITLES, UNITS, SweepResults
from app.experiments.sweep.state import LEAST, SweepState, chosen_mark, row_look, row_name, spread_columns, theory_line
from app.plotting.axis import Scale
from app.plotting.line_data import NOTHING, Line, LinePicture, PointSet, Tag
from app.plotting.numbers import ABSENT
from app.plotting.table_model import Column, Rows
from grpo_core.text import plural, tr


def setting_picture(state: SweepState, measure: str, only: int | None = None) -> LinePicture:
    """Return a chart of the final median KL, or mean reward, over the grid, with a line per row and its exact optimum.

    ``only`` is the row that the chart is about, which is drawn in front of the others, or None for all rows. If it is
    None, the chart of the KL also contains the updates of the current run.
    """
    results, grid, front = state.results, state.grid, state.front(only)
    real = state.real if only is None else None
    lines: list[Line] = []
    if results is not None:
        rows = range(len(results.sweep.rows))
        lines = [_row_of_setting(results, row, measure, only, front=row == front) for row in rows]
        best = results.optimum(front)
        lines.append(theory_line(best["place"], best[measure]))
    if real is not None:
        lines.append(real.line(grid, state.over.path, measure))
    own = state.own if measure == "kl" and only is None else OwnRun()
    ring = chosen_mark(state, lines, only)
    below = any((line.y < 0).any() for line in lines)  # the reward of a real run may exceed the axis
    low = None if below else 0
    return LinePicture(
        x=Scale(label=state.over.label if only is None else "", low=-EDGE, high=len(grid) - 1 + EDGE),
        y=Scale(label=TITLES[measure], unit=UNITS[measure], low=low) if only in (None, 0) else Scale(low=0),
        lines=tuple(lines),
        span=(0.0, LEAST),
        places=(0.0, len(grid) - 1.0),
        tags=_setting_tags(state, own, measure) if only is None else (),
        points=(
            PointSet(name="own", meaning="policy", size=2.5, x=grid.at(own.values), y=own.kl, z=7),
            PointSet(name="now", meaning="policy", size=7, x=grid.at(own.values_now), y=own.kl_now),
            PointSet(name="chosen", meaning="selection", size=12, filled=False, x=ring[0], y=ring[1], z=9),
            *(() if real is None else (real.points(grid, state.over.path, measure),)),
        ),
        x_name=lambda x: "" if results is None else results.sweep.over.named(grid.values[grid.nearest(x)]),
        make_table=lambda: _setting_table(results, measure, only, real),
    )


def _row_of_setting(results: SweepResults, row: int, measure: str, only: int | None, *, front: bool) -> Line:
    sweep, spread = results.sweep, results.final(measure, row)
    return Line(
        meaning=measure,
        title=TITLES[measure] if sweep.across is None else name(sweep.rows[row]),
        z=12 if front else 8,
        listed=only in (None, row),
        **row_look(sweep, row, front=front, alone=only is not None),
    ).over(np.arange(len(spread.middle), dtype=float), *spread)


def _setting_tags(state: SweepState, own: OwnRun, measure: str) -> tuple[Tag, ...]:
    """Return the labels of the optimum, the current run and the real runs. The rows are labelled elsewhere."""
    tags = []
    best = state.results.optimum(state.front()) if state.results is not None else {"place": NOTHING}
    if len(best["place"]):
        y = best[measure]
        half = int(np.argmin(np.abs(y - (y[0] + y[-1]) / 2)))
        tags.append(Tag(tr("exact optimum"), float(best["place"][half]), float(y[half]), "text", above=y[-1] <= y[0]))
    if state.real is not None:
        tags += state.real.tags(state.grid, state.over.path, measure)
    x = state.grid.at(own.values)
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(own.kl))
    if known.size:
        tags.append(Tag(tr("this run"), float(x[known[-1]]), 0.12 * float(own.kl[known].max()), "policy"))
    return tuple(tags)


def _setting_table(
    results: SweepResults | None, measure: str, only: int | None, real: RealRuns | None
) -> tuple[list[Column], Rows]:
    """Return one row per point: its values, the median or mean, the middle half, and the exact optimum.

    These are followed by one row for each real run.
    """
    optimum = Column("optimum", tr("Exact optimum"), unit=UNITS[measure])
    columns = [Column("value", tr("Setting")), *spread_columns(measure), optimum]
    if results is None:
        return columns, []
    sweep, numeric = results.sweep, results.sweep.over.places.numeric
    columns[0] = Column("value", sweep.over.title, decimals=2, chars=8)
    if sweep.across is not None:
        columns.insert(0, Column("row", sweep.across.title, chars=10, kind="text"))
    table: list[list[object]] = []
    for row in range(len(sweep.rows)) if only is None else [only]:
        spread, best = results.final(measure, row), results.optimum(row)
        for place, value in enumerate(sweep.over.values):
            at = np.flatnonzero(np.isclose(best["place"], place))
            exact = float(best[measure][at[0]]) if at.size else None
            numbers = [float(limit[place]) for limit in spread]
            table.append([*row_name(sweep, row), value if numeric else name(value), *numbers, exact])
    if real is not None:
        columns.insert(0, Column("runs", tr("Runs"), chars=9, kind="text"))
        table = [
            [plural("{count} seed", "{count} seeds", sweep.seeds).format(count=sweep.seeds), *cells] for cells in table
        ]
        second = [] if sweep.across is None else [ABSENT]
        for run in real.runs:
            value, one = run.value(sweep.over.path), run.measure(measure)
            shown_value = value if numeric or value is None else name(value)
            title = tr("real, seed {seed}").format(seed=run.settings.seed)
            table.append([title, *second, shown_value, one, None, None, None])
    return columns, table
