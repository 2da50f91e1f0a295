"""A measure after the last update against the setting that was swept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF

from app.panels.sweep.lines import MedianLine, TheoryLine
from app.panels.sweep.places import Places, name
from app.panels.sweep.plots import End, SweepPlot, Tag
from app.panels.sweep.results import TITLES, UNITS, Results, Spread
from app.plotting.axis import Scale
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

SYMBOLS = ("o", "s", "t", "d", "x", "+", "t1", "star", "h", "p")
EDGE = 0.35
"""Room beside the first and the last place, in places."""


class SettingPlot(SweepPlot):
    """Medians with their bands over the places of the grid, one line for each value of a second setting.

    Attributes:
        measure: "kl" or "reward".
        lines: one a row.
        points: the updates of the run that is shown.
        now: its update under the cursor, larger.
        chosen: a ring around what the hand is on.
        only: the row that stands in front of the others, or None.
        top: the largest value drawn.
    """

    def __init__(self, measure: str, only: int | None = None) -> None:
        self.measure, self.only = measure, only
        self.lines: list[MedianLine] = []
        self._results: Results | None = None
        self._label, self.top = "", 1.0
        self._spreads: list[Spread] = []
        self._own: tuple[np.ndarray, np.ndarray] = (np.empty(0), np.empty(0))
        super().__init__(
            tr("{titles} against the setting").format(titles=TITLES[measure]),
            Scale(low=-EDGE, high=EDGE),
            self._y_scale(measure),
        )
        self.theory = self.add_item(TheoryLine(), z=15)
        self.points = self.add_points("policy", "o", 2.5, filled=True)
        self.points.setZValue(7)
        self.now = self.add_points("policy", "o", 7, filled=True)
        self.chosen = self.add_points("selection", "o", 12, filled=False)
        self.chosen.setZValue(9)
        self.cursor_band.meaning = "muted"
        self.cursor_band.dress(self.theme, self.factor)

    @staticmethod
    def _y_scale(measure: str) -> Scale:
        return Scale(label=TITLES[measure], unit=UNITS[measure], low=0)

    # -- data --------------------------------------------------------------------------------------------------------

    def show_results(self, results: Results | None, title: str) -> None:
        """Draw what has come of a sweep."""
        self._results = results
        self.title = title
        self.setAccessibleName(title)
        if results is None:
            self._spreads = []
            for line in self.lines:
                line.clear_line()
            self.theory.set_points(np.empty(0), np.empty(0))
            self.set_ends([])
            return
        sweep = results.sweep
        self.rows = len(sweep.rows)
        self._spreads = [results.final(self.measure, row) for row in range(self.rows)]
        self._grow(self.rows)
        x = np.arange(len(sweep.over.values), dtype=float)
        for row, line in enumerate(self.lines):
            if row >= self.rows:
                line.clear_line()
                continue
            line.set_spread(x, self._spreads[row])
            line.set_strength(1.0 if self.rows == 1 or row == self._front else 0.55)
            line.setZValue(12 if row == self._front else 8)
        best = results.optimum(self._front)
        self.theory.set_points(best["place"], best[self.measure])
        self._name_lines(results)

    @property
    def _front(self) -> int:
        """The row that stands in front."""
        return min(self.row if self.only is None else self.only, self.rows - 1)

    def _grow(self, rows: int) -> None:
        while len(self.lines) < rows:
            symbol = SYMBOLS[len(self.lines) % len(SYMBOLS)] if self.only is None else "o"
            self.lines.append(self.add_item(MedianLine(self.measure, symbol), z=10))

    def _name_lines(self, results: Results) -> None:
        ends = []
        across = results.sweep.across
        if across is not None and self.only is None:
            for row, value in enumerate(across.values):
                end = self.lines[row].end()
                if end is not None:
                    ends.append(End(name(value), self.measure if row == self._front else "muted", *end))
        self.set_ends(ends)

    def _tags_drawn(self) -> list[Tag]:
        """Words at what is drawn besides the lines."""
        tags = []
        best = self._results.optimum(self._front) if self._results is not None else {"place": np.empty(0)}
        if len(best["place"]) and self.only is None:
            y = best[self.measure]
            half = int(np.argmin(np.abs(y - (y[0] + y[-1]) / 2)))
            tags.append(
                Tag(tr("exact optimum"), float(best["place"][half]), float(y[half]), "text", above=y[-1] <= y[0])
            )
        x, y = self.grid.at(self._own[0]), self._own[1]
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if known.size:
            tags.append(Tag(tr("this run"), float(x[known[-1]]), 0.12 * float(y[known].max()), "policy"))
        return tags

    def show_own(self, grid: Places, x: np.ndarray, y: np.ndarray, ring: tuple[np.ndarray, np.ndarray]) -> None:
        """Draw the updates of the run that is shown at the values x (n,) that they ran under."""
        self.grid = grid
        self._own = (x, y)
        self.points.set_points(grid.at(x), y)
        self.now.set_points(grid.at(ring[0]), ring[1])

    def show_hand(self, x: float, row: int) -> None:
        """Put the hand at a place and on a row."""
        self.hand, self.row = x, row
        near = self.grid.nearest(x)
        row = row if self.only is None or row == self.only else len(self._spreads)
        on_grid = abs(x - near) < 1e-9 and row < len(self._spreads) and near < len(self._spreads[row].middle)
        y = self._spreads[row].middle[near : near + 1] if on_grid else np.empty(0)
        self.chosen.set_points(np.full(len(y), float(near)), y)
        self.set_cursor(x if self._results is not None else None)

    def fit(self, label: str) -> None:
        """Set the axes for what is drawn, and place the words."""
        self._label = label if self.only is None else ""
        self.set_scales(y=self._y_scale(self.measure) if self.only in (None, 0) else Scale(low=0))
        self.set_tags(self._tags_drawn())
        ends = [end for line in self.lines for end in line.ends] + list(self.theory.extent())
        ends += [float(v) for v in (self._own[1].min(), self._own[1].max())] if len(self._own[1]) else []
        known = [end for end in ends if np.isfinite(end)]
        self.top = max([*known, 0.1])
        self.set_extent(0.0, self.top)

    def places(self) -> tuple[float, float] | None:
        return 0.0, float(len(self.grid) - 1)

    def refresh(self) -> None:
        room = self.view_box.width() / (len(self.grid) - 1 + 2 * EDGE)
        names = self.grid.labels(self.words.width, room)
        self.set_x_names(names)
        # The second line of labels stands where the axis has its own.
        label = " " if any("\n" in text for _, text in names) else self._label
        self.set_scales(x=Scale(label=label, low=-EDGE, high=len(self.grid) - 1 + EDGE))
        super().refresh()

    # -- reading -----------------------------------------------------------------------------------------------------

    def spot(self, point: QPointF) -> tuple[float, int] | None:
        x = self._x_at(point)
        if x is None or self._results is None:
            return None
        place = self.grid.nearest(x)
        y = self.view_box.mapSceneToView(self.mapToScene(point.toPoint())).y()
        gaps = [abs(spread.middle[place] - y) for spread in self._spreads]
        near = self.only if self.only is not None else int(np.argmin(np.nan_to_num(gaps, nan=np.inf)))
        return float(place), near

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """Median and middle half at the nearest place."""
        if self._results is None:
            return []
        sweep, place = self._results.sweep, self.grid.nearest(x)
        lines = [(f"{sweep.over.symbol} {name(sweep.over.values[place])}", "muted")]
        for row, spread in enumerate(self._spreads):
            if np.isfinite(spread.middle[place]) and (self.only is None or row == self.only):
                who = "" if sweep.across is None else f"{name(sweep.rows[row])}  "
                lines.append((f"{who}{_told(spread, place)}", self.measure))
        best = self._results.optimum(self._front)
        at = np.flatnonzero(np.isclose(best["place"], place))
        if at.size:
            lines.append((tr("exact optimum  {best}").format(best=shown(float(best[self.measure][at[0]]))), "text"))
        return lines

    def table(self) -> tuple[list[Column], Rows]:
        """One row a point: its values, the median and the middle half, and the exact optimum."""
        unit = UNITS[self.measure]
        columns = [
            Column("value", tr("Setting")),
            Column("middle", tr("{titles}, median").format(titles=TITLES[self.measure]), unit=unit),
            Column("low", tr("Quarter below"), unit=unit),
            Column("high", tr("Quarter above"), unit=unit),
            Column("optimum", tr("Exact optimum"), unit=unit),
        ]
        if self._results is None:
            return columns, []
        sweep = self._results.sweep
        columns[0] = Column("value", sweep.over.title, decimals=2, chars=8)
        if sweep.across is not None:
            columns.insert(0, Column("row", sweep.across.title, chars=10, kind="text"))
        told: list[list[object]] = []
        for row in self._shown_rows():
            spread, best = self._spreads[row], self._results.optimum(row)
            for place, value in enumerate(sweep.over.values):
                at = np.flatnonzero(np.isclose(best["place"], place))
                exact = float(best[self.measure][at[0]]) if at.size else None
                numbers = [float(limit[place]) for limit in spread]
                first: list[object] = [] if sweep.across is None else [name(sweep.rows[row])]
                told.append([*first, value if self.grid.numeric else name(value), *numbers, exact])
        return columns, told

    def _shown_rows(self) -> Sequence[int]:
        return range(self.rows) if self.only is None else [self.only]


def _told(spread: Spread, place: int) -> str:
    return tr("{middle} ({low} to {high})").format(
        middle=shown(spread.middle[place]), low=shown(spread.low[place]), high=shown(spread.high[place])
    )
