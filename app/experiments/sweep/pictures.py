"""A sweep as line charts: a measure against the setting, over training, and reward against KL."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from PySide6.QtCore import Qt

from app.experiments.sweep.chart import EDGE
from app.experiments.sweep.plan import ESTIMATOR, Sweep, Swept, name
from app.experiments.sweep.results import CENTRES, TITLES, UNITS, Spread, SweepResults, course, row_line, titled
from app.experiments.sweep.runs_beside import OwnRun, RealRuns
from app.plotting.axis import Scale
from app.plotting.line_data import NOTHING, Line, LinePicture, PointSet, Tag
from app.plotting.numbers import ABSENT, shown
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import plural, tr

MARKERS = ("o", "s", "t", "d", "x", "+", "t1", "star", "h", "p")
"""Marker shapes, one per row."""
BEHIND = 0.55
"""Opacity of the unselected rows."""
LEAST = 0.1
"""Minimum for the upper end of an axis of KL or reward."""
SOLID = Qt.PenStyle.SolidLine
"""Line style of all measures in these charts. Only theory is dashed, whatever style a measure has elsewhere."""
OPTIMUM = "optimum"
"""Name of the theoretical line."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SweepState:
    """Data for the charts of a sweep.

    Attributes:
        results: the results so far; None before the first sweep.
        over: the grid of the sweep, or of the run if there is no sweep.
        x, row: the selected position and row.
        runs: the runs at the selected position; None if there are none.
        real: runs of a sweep of real training to show in the charts, or None.
    """

    results: SweepResults | None
    over: Swept
    x: float
    row: int
    own: OwnRun
    runs: Ensemble | None
    real: RealRuns | None

    @property
    def chosen_index(self) -> int | None:
        """Index of the selected grid value, or None if the selected position is between two values."""
        near = self.over.nearest(self.x)
        return near if abs(self.x - near) < 1e-9 else None

    def front(self, only: int | None = None) -> int:
        """Return the row in front: ``only`` or, if that is None, the selected row."""
        last = len(self.results.sweep.rows) - 1 if self.results is not None else 0
        return min(self.row if only is None else only, last)


def row_look(sweep: Sweep, row: int, *, front: bool, alone: bool = False) -> dict[str, Any]:
    """Return what the lines of a row have in common in all charts. ``alone``: whether the chart is about this row."""
    marker = "o" if alone else MARKERS[row % len(MARKERS)]
    return {
        "name": row_line(row),
        "style": SOLID,
        "label": "" if alone or sweep.across is None else name(sweep.rows[row]),
        "label_meaning": "" if front else "muted",
        "marker": marker,
        "filled": marker == "o",
        "strength": 1.0 if front else BEHIND,
    }


def theory_line(x: np.ndarray, y: np.ndarray) -> Line:
    """Return a dashed line through the exact optimum ``y`` at each value ``x`` of the setting, both (n,)."""
    return Line(name=OPTIMUM, title=tr("exact optimum"), meaning="text", style=Qt.PenStyle.DashLine, x=x, y=y, z=15)


def chosen_mark(state: SweepState, lines: list[Line], only: int | None = None) -> PointSet:
    """Return a ring around the selected mark, if it is on one of the lines."""
    ring = PointSet(name="chosen", meaning="selection", size=12, filled=False, z=9)
    line = next((line for line in lines if line.name == row_line(state.row) and only in (None, state.row)), None)
    if line is None or state.chosen_index is None:
        return ring
    here = slice(state.chosen_index, state.chosen_index + 1)
    return dataclasses.replace(ring, x=line.x[here], y=line.y[here])


def spread_columns(measure: str) -> list[Column]:
    """Return the columns of the centre of a measure and of its middle half."""
    unit = UNITS[measure]
    return [
        Column(measure, titled(measure), unit=unit),
        Column(f"{measure} low", tr("Quarter below"), unit=unit),
        Column(f"{measure} high", tr("Quarter above"), unit=unit),
    ]


def row_name(sweep: Sweep, row: int) -> list[object]:
    """Return the cell that names a row at the beginning of a table row, if there is a second setting."""
    return [] if sweep.across is None else [name(sweep.rows[row])]


def setting_picture(state: SweepState, measure: str, only: int | None = None) -> LinePicture:
    """Return a chart of the final median KL, or mean reward, over the grid, with a line per row and its exact optimum.

    ``only`` is the row that the chart is about, which is drawn in front of the others, or None for all rows. If it is
    None, the chart of the KL also contains the updates of the current run.
    """
    results, over, front = state.results, state.over, state.front(only)
    real = state.real if only is None else None
    lines: list[Line] = []
    if results is not None:
        rows = range(len(results.sweep.rows))
        lines = [_row_of_setting(results, row, measure, only, front=row == front) for row in rows]
        best = results.optimum(front)
        lines.append(theory_line(best["place"], best[measure]))
    marks: list[PointSet] = []
    label: list[Tag] = []
    if real is not None:
        points, line, label = real.drawn(over, measure)
        marks.append(points)
        lines.append(line)
    own = state.own if measure == "kl" and only is None else OwnRun()
    below = any((line.y < 0).any() for line in lines)  # the reward of a real run may exceed the axis
    low = None if below else 0
    return LinePicture(
        x=Scale(label=over.label if only is None else "", low=-EDGE, high=len(over) - 1 + EDGE),
        y=Scale(label=TITLES[measure], unit=UNITS[measure], low=low) if only in (None, 0) else Scale(low=0),
        lines=tuple(lines),
        span=(0.0, LEAST),
        places=(0.0, len(over) - 1.0),
        tags=_setting_tags(state, own, measure, label) if only is None else (),
        points=(
            PointSet(name="own", meaning="policy", size=2.5, x=over.at(own.values), y=own.kl, z=7),
            PointSet(name="now", meaning="policy", size=7, x=over.at(own.values_now), y=own.kl_now),
            chosen_mark(state, lines, only),
            *marks,
        ),
        x_name=lambda x: "" if results is None else over.named(over.values[over.nearest(x)]),
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


def _setting_tags(state: SweepState, own: OwnRun, measure: str, real: list[Tag]) -> tuple[Tag, ...]:
    """Return the labels of the optimum, the real runs and the current run. The rows are labelled elsewhere."""
    tags = []
    best = state.results.optimum(state.front()) if state.results is not None else {"place": NOTHING}
    if len(best["place"]):
        y = best[measure]
        half = int(np.argmin(np.abs(y - (y[0] + y[-1]) / 2)))
        tags.append(Tag(tr("exact optimum"), float(best["place"][half]), float(y[half]), "text", above=y[-1] <= y[0]))
    tags += real
    x = state.over.at(own.values)
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
    sweep, numeric = results.sweep, results.sweep.over.numeric
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


def frontier_picture(state: SweepState) -> LinePicture:
    """Return a chart with one mark per point, joined in grid order, and the exact frontier if theory provides one."""
    results, front = state.results, state.front()
    if results is None:
        return LinePicture(x=Scale(label=titled("kl"), unit=tr("nats"), low=0), y=Scale(label=titled("reward")))
    best, rows = results.optimum(front), range(len(results.sweep.rows))
    lines = [_row_of_frontier(results, row, front=row == front) for row in rows]
    right = np.concatenate([best["kl"], *(results.final("kl", row).high for row in rows)])
    return LinePicture(
        x=Scale(label=titled("kl"), unit=tr("nats"), low=0, high=float(np.nanmax([*right, LEAST])) * 1.05),
        y=Scale(label=titled("reward")),
        lines=(*lines, theory_line(best["kl"], best["reward"])),
        subject=results,
        tags=_frontier_tags(state, results, lines[front]),
        points=(chosen_mark(state, lines),),
        make_reading=lambda x: _frontier_reading(state, results),
        make_table=lambda: _frontier_table(results),
    )


def _row_of_frontier(results: SweepResults, row: int, *, front: bool) -> Line:
    kl, reward, sweep = results.final("kl", row), results.final("reward", row), results.sweep
    look = row_look(sweep, row, front=front)
    line = Line(meaning="kl", title=tr("reward"), **look).over(kl.middle, reward.middle)
    crossed = dataclasses.replace(line, low=reward.low, high=reward.high, left=kl.low, right=kl.high)
    return crossed if front else line


def _frontier_tags(state: SweepState, results: SweepResults, front: Line) -> tuple[Tag, ...]:
    """Return the labels: the setting's value at every mark of the front row, and the frontier's name.

    The label of the selected mark comes first.
    """
    sweep, best = results.sweep, results.optimum(state.front())
    known = np.flatnonzero(np.isfinite(front.x)).tolist()
    tags = [Tag(name(sweep.over.values[n]), float(front.x[n]), float(front.y[n])) for n in known]
    if len(best["kl"]):
        half = int(np.argmin(np.abs(best["kl"] - best["kl"].max() / 4)))
        tags.insert(0, Tag(tr("exact optimum"), float(best["kl"][half]), float(best["reward"][half]), "text"))
    near = state.over.nearest(state.x)
    if near in known:
        tags.insert(
            0, Tag(sweep.over.named(sweep.over.values[near]), float(front.x[near]), float(front.y[near]), "text")
        )
    return tuple(tags)


def _frontier_reading(state: SweepState, results: SweepResults) -> list[tuple[str, str]]:
    """Return the read-out of the selected point. It names the point, because several points can have the same KL."""
    over, near = state.over, state.over.nearest(state.x)
    kl, reward = (results.final(measure, state.front()).middle[near] for measure in ("kl", "reward"))
    return [
        (over.named(over.values[near]), "muted"),
        (tr("KL  {kl}").format(kl=shown(kl)), "kl"),
        (tr("reward  {reward}").format(reward=shown(reward)), "reward"),
    ]


def _frontier_table(results: SweepResults) -> tuple[list[Column], Rows]:
    """Return one row per point: its value, and its KL and reward with their middle halves."""
    sweep = results.sweep
    columns = [] if sweep.across is None else [Column("row", sweep.across.title, chars=10, kind="text")]
    numeric = sweep.over.numeric
    columns.append(Column("value", sweep.over.title, chars=9, kind="number" if numeric else "text"))
    columns += [*spread_columns("kl"), *spread_columns("reward")]
    table: list[list[object]] = []
    for row in range(len(sweep.rows)):
        kl, reward = results.final("kl", row), results.final("reward", row)
        for place, value in enumerate(sweep.over.values):
            table.append([*row_name(sweep, row), value, *(float(limit[place]) for limit in (*kl, *reward))])
    return columns, table


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
