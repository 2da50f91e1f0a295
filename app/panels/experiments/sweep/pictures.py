"""A sweep as line charts: a measure against the setting, reward against KL, and a measure over training."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from PySide6.QtCore import Qt

from app.panels.experiments.sweep.chart import EDGE
from app.panels.experiments.sweep.grid_axis import GridAxis, name
from app.panels.experiments.sweep.own_run import OwnRun
from app.panels.experiments.sweep.plan import ESTIMATOR, Sweep
from app.panels.experiments.sweep.results import TITLES, UNITS, Spread, SweepResults, course, row_line
from app.plotting.axis import Scale
from app.plotting.line_data import NOTHING, Line, LinePicture, PointSet, Tag
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

MARKERS = ("o", "s", "t", "d", "x", "+", "t1", "star", "h", "p")
"""Shape of the marks of each row."""
BEHIND = 0.55
"""Strength of the rows that are not held."""
OWN_POINTS = 700
"""Points drawn of the run that is shown, over training."""
LEAST = 0.1
"""What an axis of KL or reward reaches at least."""
SOLID = Qt.PenStyle.SolidLine
"""Only theory is dashed here, whatever the measure is elsewhere."""
OPTIMUM = "optimum"
"""Name of the line of theory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SweepState:
    """What the pictures of a sweep are drawn from.

    Attributes:
        results: what has come of the sweep; None before the first.
        grid: its places, or those of the run that is shown by itself.
        x, row: the place and the row that are held.
        own: the run that is shown.
        runs: the runs at the place that is held; None without.
        label: name and letter of the swept setting, for its axis.
    """

    results: SweepResults | None = None
    grid: GridAxis = field(default_factory=lambda: GridAxis((0,)))
    x: float = 0.0
    row: int = 0
    own: OwnRun = field(default_factory=OwnRun)
    runs: Ensemble | None = None
    label: str = ""

    @property
    def held_index(self) -> int | None:
        """Index of the place that is held; None between two places."""
        near = self.grid.nearest(self.x)
        return near if abs(self.x - near) < 1e-9 else None

    def front(self, only: int | None = None) -> int:
        """The row that stands in front: the one that is held, or ``only``."""
        last = len(self.results.sweep.rows) - 1 if self.results is not None else 0
        return min(self.row if only is None else only, last)


# -- a measure against the setting -------------------------------------------------------------------------------------


def setting_picture(state: SweepState, measure: str, only: int | None = None) -> LinePicture:
    """The final median of a measure at every place of the grid, one line a row, and its exact optimum.

    ``only``: the one row that this chart is about, the others behind it; None for all. Without it the updates of the
    run that is shown lie over the picture of the KL.
    """
    results, grid, front = state.results, state.grid, state.front(only)
    lines: list[Line] = []
    if results is not None:
        rows = range(len(results.sweep.rows))
        lines = [_row_of_setting(results, row, measure, only, front=row == front) for row in rows]
        best = results.optimum(front)
        lines.append(_theory(best["place"], best[measure]))
    own = state.own if measure == "kl" and only is None else OwnRun()
    ring = _held_mark(state, lines, only)
    return LinePicture(
        x=Scale(label=state.label if only is None else "", low=-EDGE, high=len(grid) - 1 + EDGE),
        y=Scale(label=TITLES[measure], unit=UNITS[measure], low=0) if only in (None, 0) else Scale(low=0),
        lines=tuple(lines), span=(0.0, LEAST), places=(0.0, len(grid) - 1.0),
        tags=_setting_tags(state, own, measure, only),
        points=(
            PointSet(name="own", meaning="policy", size=2.5, x=grid.at(own.values), y=own.kl, z=7),
            PointSet(name="now", meaning="policy", size=7, x=grid.at(own.values_now), y=own.kl_now),
            PointSet(name="held", meaning="selection", size=12, filled=False, x=ring[0], y=ring[1], z=9),
        ),
        x_name=lambda x: "" if results is None else _place_text(results.sweep, grid.nearest(x)),
        make_table=lambda: _setting_table(results, measure, only),
    )  # fmt: skip


def _row_of_setting(results: SweepResults, row: int, measure: str, only: int | None, *, front: bool) -> Line:
    sweep, spread = results.sweep, results.final(measure, row)
    named = sweep.across is not None
    marker = MARKERS[row % len(MARKERS)] if only is None else "o"
    return Line(
        name=row_line(row), meaning=measure, style=SOLID, label=name(sweep.rows[row]) if named and only is None else "",
        title=name(sweep.rows[row]) if named else TITLES[measure], label_meaning="" if front else "muted",
        x=np.arange(len(spread.middle), dtype=float), y=spread.middle, low=spread.low, high=spread.high,
        marker=marker, filled=marker == "o", strength=1.0 if front else BEHIND, z=12 if front else 8,
        listed=only in (None, row),
    )  # fmt: skip


def _theory(x: np.ndarray, y: np.ndarray) -> Line:
    """Where theory says that the runs arrive: dashed, in the colour of text."""
    return Line(name=OPTIMUM, title=tr("exact optimum"), meaning="text", style=Qt.PenStyle.DashLine, x=x, y=y, z=15)


def _held_mark(state: SweepState, lines: list[Line], only: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Place and height of the mark that is held, (0,) or (1,) each."""
    line = next((line for line in lines if line.name == row_line(state.row) and only in (None, state.row)), None)
    if line is None or state.held_index is None or state.held_index >= len(line.x):
        return NOTHING, NOTHING
    return line.x[state.held_index :][:1], line.y[state.held_index :][:1]


def _setting_tags(state: SweepState, own: OwnRun, measure: str, only: int | None) -> tuple[Tag, ...]:
    """Words at what is drawn besides the rows."""
    tags = []
    best = state.results.optimum(state.front()) if state.results is not None else {"place": NOTHING}
    if len(best["place"]) and only is None:
        y = best[measure]
        half = int(np.argmin(np.abs(y - (y[0] + y[-1]) / 2)))
        tags.append(Tag(tr("exact optimum"), float(best["place"][half]), float(y[half]), "text", above=y[-1] <= y[0]))
    x = state.grid.at(own.values)
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(own.kl))
    if known.size:
        tags.append(Tag(tr("this run"), float(x[known[-1]]), 0.12 * float(own.kl[known].max()), "policy"))
    return tuple(tags)


def _place_text(sweep: Sweep, place: int) -> str:
    return f"{sweep.over.symbol} {name(sweep.over.values[place])}"


def _setting_table(results: SweepResults | None, measure: str, only: int | None) -> tuple[list[Column], Rows]:
    """One row a point: its values, the median and the middle half, and the exact optimum."""
    unit = UNITS[measure]
    columns = [
        Column("value", tr("Setting")),
        Column("middle", tr("{titles}, median").format(titles=TITLES[measure]), unit=unit),
        Column("low", tr("Quarter below"), unit=unit),
        Column("high", tr("Quarter above"), unit=unit),
        Column("optimum", tr("Exact optimum"), unit=unit),
    ]
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
            table.append([*_row_name(sweep, row), value if numeric else name(value), *numbers, exact])
    return columns, table


def _row_name(sweep: Sweep, row: int) -> list[object]:
    """The first cell of a table's row where there is a second setting."""
    return [] if sweep.across is None else [name(sweep.rows[row])]


# -- reward against KL -------------------------------------------------------------------------------------------------


def frontier_picture(state: SweepState) -> LinePicture:
    """One mark a point, joined in the order of the grid, over the exact frontier where theory gives one."""
    results, front = state.results, state.front()
    if results is None:
        return LinePicture(x=Scale(label="KL", unit="nats", low=0), y=Scale(label=tr("Reward")))
    best, rows = results.optimum(front), range(len(results.sweep.rows))
    lines = [_row_of_frontier(results, row, front=row == front) for row in rows]
    held = _held_mark(state, lines, None)
    right = np.concatenate([best["kl"], *(results.final("kl", row).high for row in rows)])
    return LinePicture(
        x=Scale(label="KL", unit="nats", low=0, high=float(np.nanmax([*right, LEAST])) * 1.05),
        y=Scale(label=tr("Reward")),
        lines=(*lines, _theory(best["kl"], best["reward"])), subject=results,
        tags=_frontier_tags(state, results, lines[front]),
        points=(PointSet(name="held", meaning="selection", size=12, filled=False, x=held[0], y=held[1], z=9),),
        make_reading=lambda x: _frontier_reading(state, results), make_table=lambda: _frontier_table(results),
    )  # fmt: skip


def _row_of_frontier(results: SweepResults, row: int, *, front: bool) -> Line:
    kl, reward, sweep = results.final("kl", row), results.final("reward", row), results.sweep
    marker = MARKERS[row % len(MARKERS)]
    line = Line(
        name=row_line(row), meaning="kl", style=SOLID, label="" if sweep.across is None else name(sweep.rows[row]),
        title=tr("reward"), label_meaning="" if front else "muted", x=kl.middle, y=reward.middle, marker=marker,
        filled=marker == "o", strength=1.0 if front else BEHIND,
    )  # fmt: skip
    crossed = dataclasses.replace(line, low=reward.low, high=reward.high, left=kl.low, right=kl.high)
    return crossed if front else line


def _frontier_tags(state: SweepState, results: SweepResults, front: Line) -> tuple[Tag, ...]:
    """The value at every mark of the row in front; first the one that is held, and the name of the frontier."""
    sweep, best = results.sweep, results.optimum(state.front())
    known = np.flatnonzero(np.isfinite(front.x)).tolist()
    tags = [Tag(name(sweep.over.values[n]), float(front.x[n]), float(front.y[n])) for n in known]
    if len(best["kl"]):
        half = int(np.argmin(np.abs(best["kl"] - best["kl"].max() / 4)))
        tags.insert(0, Tag(tr("exact optimum"), float(best["kl"][half]), float(best["reward"][half]), "text"))
    near = state.grid.nearest(state.x)
    if near in known:
        tags.insert(0, Tag(_place_text(sweep, near), float(front.x[near]), float(front.y[near]), "text"))
    return tuple(tags)


def _frontier_reading(state: SweepState, results: SweepResults) -> list[tuple[str, str]]:
    """The point that is held: several may share a KL."""
    near = state.grid.nearest(state.x)
    kl, reward = (results.final(measure, state.front()).middle[near] for measure in ("kl", "reward"))
    return [
        (_place_text(results.sweep, near), "muted"),
        (tr("KL  {kl}").format(kl=shown(kl)), "kl"),
        (tr("reward  {reward}").format(reward=shown(reward)), "reward"),
    ]


def _frontier_table(results: SweepResults) -> tuple[list[Column], Rows]:
    """One row a point: its value, KL and reward with their middle halves."""
    sweep = results.sweep
    columns = [] if sweep.across is None else [Column("row", sweep.across.title, chars=10, kind="text")]
    numeric = sweep.over.places.numeric
    columns.append(Column("value", sweep.over.title, chars=9, kind="number" if numeric else "text"))
    for key, unit in (("KL", "nats"), (tr("Reward"), "")):
        columns += [
            Column(key, tr("{key}, median").format(key=key), unit=unit),
            Column(f"{key} low", tr("Quarter below"), unit=unit),
            Column(f"{key} high", tr("Quarter above"), unit=unit),
        ]
    table: list[list[object]] = []
    for row in range(len(sweep.rows)):
        kl, reward = results.final("kl", row), results.final("reward", row)
        for place, value in enumerate(sweep.over.values):
            table.append([*_row_name(sweep, row), value, *(float(limit[place]) for limit in (*kl, *reward))])
    return columns, table


# -- over training -----------------------------------------------------------------------------------------------------


def training_picture(state: SweepState, measure: str, *, every: bool) -> LinePicture:
    """Medians over the updates of the runs that are held and, with ``every``, of every place of their row behind them;
    where it is KL that is drawn, also of the run that is shown."""
    behind = _courses(state, measure) if every else []
    lines: list[Line] = []
    held_text, last = "", 10
    if state.runs is not None and state.results is not None:
        sweep, spread = state.results.sweep, course(state.runs, measure)
        held_text, last = name(_value(state.runs, sweep)), max(last, sweep.updates)
        lines.append(
            Line(name="held", label=f"{sweep.over.symbol} {held_text}", title=tr("median"), meaning=measure, z=14,
                 style=SOLID,
                 x=np.arange(len(spread.middle), dtype=float), y=spread.middle, low=spread.low, high=spread.high)
        )  # fmt: skip
    others = [_course_behind(text, spread, measure, named=text != held_text) for text, spread in behind]
    lines += [*others[:1], *others[:0:-1]]  # where there is no room for all labels, the outermost ones stay
    own = state.own.course
    tags: tuple[Tag, ...] = ()
    if measure == "kl" and len(own):
        places, values = own.window(0, len(own), OWN_POINTS // 2)
        lines.append(Line(name="own", meaning="policy", x=places + 1, y=values))
        tags, last = (Tag(tr("this run"), float(len(own)), own.last, "policy"),), max(last, len(own))
    return LinePicture(
        x=Scale(label=tr("update"), low=0, high=last, whole=True),
        y=Scale(label=TITLES[measure], unit=UNITS[measure], low=0), lines=tuple(lines), span=(0.0, LEAST), tags=tags,
        places=(0.0, float(last)), make_table=lambda: _training_table(state, measure, behind),
        make_reading=lambda x: _training_reading(state, measure, round(x)),
    )  # fmt: skip


def _training_reading(state: SweepState, measure: str, update: int) -> list[tuple[str, str]]:
    """What the runs that are held, and the one that is shown, had reached after an update."""
    lines = [(tr("update {update}").format(update=update), "muted")]
    if state.runs is not None and 0 <= update < len(state.runs.measures[measure]):
        middle, low, high = (shown(float(limit[update])) for limit in course(state.runs, measure))
        text = tr("median  {middle} ({low} to {high})").format(middle=middle, low=low, high=high)
        lines.append((text, measure))
    if measure == "kl" and 1 <= update <= len(state.own.course):
        value = shown(float(state.own.course.values[update - 1]))
        lines.append((tr("this run  {value}").format(value=value), "policy"))
    return lines


def training_title(state: SweepState, measure: str) -> str:
    """What the picture over training is called: the measure, and the value that is held."""
    if state.runs is None or state.results is None:
        return tr("{measure} over training").format(measure=TITLES[measure])
    sweep = state.results.sweep
    return tr("{measure} over training at {symbol} {value}").format(
        measure=TITLES[measure], symbol=sweep.over.symbol, value=name(_value(state.runs, sweep))
    )


def _courses(state: SweepState, measure: str) -> list[tuple[str, Spread]]:
    """Value and course of every place of the row that is held, of those that have come."""
    results = state.results
    if results is None:
        return []
    runs = [(value, results.done.get((place, state.row))) for place, value in enumerate(results.sweep.over.values)]
    return [(name(value), course(found, measure)) for value, found in runs if found is not None]


def _course_behind(text: str, spread: Spread, measure: str, *, named: bool) -> Line:
    return Line(
        name=f"at {text}", label=text if named else "", label_meaning="muted", meaning=measure, style=SOLID, z=6,
        strength=0.6,
        x=np.arange(len(spread.middle), dtype=float), y=spread.middle, low=spread.low, high=spread.high, listed=False,
    )  # fmt: skip


def _value(runs: Ensemble, sweep: Sweep) -> object:
    """The value of the swept setting that the runs had."""
    if sweep.over.path != ESTIMATOR:
        return runs.settings.get(sweep.over.path)
    return next((v for v in sweep.over.values if not runs.settings.differences(sweep.at(v))), "")


def _training_table(state: SweepState, measure: str, behind: list[tuple[str, Spread]]) -> tuple[list[Column], Rows]:
    """One row an update: the runs that are held, the run that is shown, and the median of every place drawn."""
    unit = UNITS[measure]
    columns = [
        Column("update", tr("Update"), decimals=0), Column("middle", tr("Median"), unit=unit),
        Column("low", tr("Quarter below"), unit=unit), Column("high", tr("Quarter above"), unit=unit),
        Column("own", tr("This run"), unit=unit),
        *(Column(f"at {n}", tr("at {value}").format(value=text), unit=unit) for n, (text, _) in enumerate(behind)),
    ]  # fmt: skip
    here = course(state.runs, measure) if state.runs is not None else None
    own = state.own.course.values if measure == "kl" else NOTHING
    curves = [*(here or (NOTHING,) * 3), np.concatenate([[np.nan], own]), *(s.middle for _, s in behind)]
    rows = max(len(curve) for curve in curves) if here is not None or len(own) else 0
    return columns, [[n, *(float(c[n]) if n < len(c) else None for c in curves)] for n in range(rows)]
