"""Data for the charts of a sweep, and plot items shared by several of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PySide6.QtCore import Qt

from app.experiments.sweep.grid_axis import GridAxis, name
from app.experiments.sweep.own_run import OwnRun
from app.experiments.sweep.plan import BETA, Sweep, Swept
from app.experiments.sweep.real_runs import RealRuns
from app.experiments.sweep.results import UNITS, SweepResults, row_line, titled
from app.plotting.line_data import NOTHING, Line
from app.plotting.table_model import Column
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

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
        grid: the grid of the sweep, or of the run if there is no sweep.
        x, row: the selected position and row.
        runs: the runs at the selected position; None if there are none.
        real: runs of a sweep of real training to show in the charts, or None.
    """

    results: SweepResults | None = None
    grid: GridAxis = field(default_factory=lambda: GridAxis((0,)))
    x: float = 0.0
    row: int = 0
    own: OwnRun = field(default_factory=OwnRun)
    runs: Ensemble | None = None
    over: Swept = field(default_factory=lambda: Swept.of(BETA))
    real: RealRuns | None = None

    @property
    def chosen_index(self) -> int | None:
        """Index of the selected grid value, or None if the selected position is between two values."""
        near = self.grid.nearest(self.x)
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


def chosen_mark(state: SweepState, lines: list[Line], only: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the position and height of the selected mark, (0,) or (1,) each."""
    line = next((line for line in lines if line.name == row_line(state.row) and only in (None, state.row)), None)
    if line is None or state.chosen_index is None or state.chosen_index >= len(line.x):
        return NOTHING, NOTHING
    return line.x[state.chosen_index :][:1], line.y[state.chosen_index :][:1]


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
