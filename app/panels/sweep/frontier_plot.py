"""Reward against KL: what each step away from the reference buys."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt

from app.panels.sweep.lines import MedianLine, TheoryLine
from app.panels.sweep.places import name
from app.panels.sweep.plots import End, SweepPlot, Tag
from app.panels.sweep.results import Results, Spread
from app.panels.sweep.setting_plot import SYMBOLS
from app.plotting.axis import Scale
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Rows
from app.theme.tokens import Theme
from grpo_core.text import tr

REACH = 24
"""Pixels from a mark within which a click means it."""


class Crosses(pg.PlotCurveItem):  # type: ignore[misc]
    """The middle halves in both directions, as crosses."""

    def __init__(self) -> None:
        super().__init__(connect="pairs", antialias=False)

    def set_crosses(self, x: Spread, y: Spread) -> None:
        """Give the spreads (n,) along both axes."""
        xs = np.stack([x.low, x.high, x.middle, x.middle], axis=-1).reshape(-1)
        ys = np.stack([y.middle, y.middle, y.low, y.high], axis=-1).reshape(-1)
        known = np.isfinite(xs) & np.isfinite(ys)
        self.setData(xs[known], ys[known])

    def dress(self, theme: Theme, scale: float) -> None:
        pen = theme.pen("kl", 2.0 if theme.bold else 1.0 * scale, Qt.PenStyle.SolidLine)
        pen.setColor(theme.faint("kl", 0.6))
        self.setPen(pen)


class FrontierPlot(SweepPlot):
    """One mark a point, joined in the order of the grid, over the exact frontier where theory gives one."""

    def __init__(self) -> None:
        self.lines: list[MedianLine] = []
        self._results: Results | None = None
        self._points: list[tuple[Spread, Spread]] = []
        super().__init__(tr("Reward against KL"), Scale(label="KL", unit="nats", low=0), Scale(label=tr("Reward")))
        self.theory = self.add_item(TheoryLine(), z=15)
        self.crosses = self.add_item(Crosses(), z=5)
        self.chosen = self.add_points("selection", "o", 12, filled=False)
        self.chosen.setZValue(9)

    def show_results(self, results: Results | None) -> None:
        """Draw what has come of a sweep."""
        if results is not self._results:
            self._held["y"] = None
        self._results, self._points = results, []
        for line in self.lines:
            line.clear_line()
        if results is None:
            return
        sweep = results.sweep
        self.rows, self.grid = len(sweep.rows), sweep.over.places
        self._points = [(results.final("kl", row), results.final("reward", row)) for row in range(self.rows)]
        while len(self.lines) < self.rows:
            self.lines.append(self.add_item(MedianLine("kl", SYMBOLS[len(self.lines) % len(SYMBOLS)]), z=10))
        front = min(self.row, self.rows - 1)
        ends, tags = [], []
        for row, (x, y) in enumerate(self._points):
            line = self.lines[row]
            line.set_spread(x.middle, y, band=False)
            line.set_strength(1.0 if row == front else 0.55)
            end = line.end()
            if sweep.across is not None and end is not None:
                ends.append(End(name(sweep.rows[row]), "kl" if row == front else "muted", *end))
        x, y = self._points[front]
        self.crosses.set_crosses(x, y)
        for place, value in enumerate(sweep.over.values):
            if np.isfinite(x.middle[place]):
                tags.append(Tag(name(value), float(x.middle[place]), float(y.middle[place])))
        best = results.optimum(front)
        self.theory.set_points(best["kl"], best["reward"])
        if len(best["kl"]):
            half = int(np.argmin(np.abs(best["kl"] - best["kl"].max() / 4)))
            tags.insert(0, Tag(tr("exact optimum"), float(best["kl"][half]), float(best["reward"][half]), "text"))
        if np.isfinite(x.middle[near := self.grid.nearest(self.hand)]):
            text = f"{sweep.over.symbol} {name(sweep.over.values[near])}"
            tags.insert(0, Tag(text, float(x.middle[near]), float(y.middle[near]), "text"))
        self.set_tags(tags)
        self.set_ends(ends)
        self._fit()

    def _fit(self) -> None:
        right = [float(v) for x, _ in self._points for v in x.high if np.isfinite(v)]
        up = [float(v) for _, y in self._points for limit in y for v in limit if np.isfinite(v)]
        if self.theory.xData is not None and len(self.theory.xData):
            right.append(float(self.theory.xData.max()))
            up += [float(self.theory.yData.min()), float(self.theory.yData.max())]
        self.set_scales(x=Scale(label="KL", unit="nats", low=0, high=max([*right, 0.1]) * 1.05))
        if up:
            self.set_extent(min(up), max(up))

    def show_hand(self, x: float, row: int) -> None:
        """Put a ring around the point that the hand is on."""
        self.hand, self.row = x, row
        near = self.grid.nearest(x)
        if row < len(self._points) and abs(x - near) < 1e-9:
            kl, reward = self._points[row]
            self.chosen.set_points(kl.middle[near : near + 1], reward.middle[near : near + 1])
        else:
            self.chosen.set_points(np.empty(0), np.empty(0))

    def spot(self, point: QPointF) -> tuple[float, int] | None:
        """The mark nearest to the pointer, if it is near."""
        at = self.frame.mapFromScene(self.mapToScene(point.toPoint()))
        found = [
            ((self.to_pixels(float(x), float(y)) - at).manhattanLength(), place, row)
            for row, (xs, ys) in enumerate(self._points)
            for place, (x, y) in enumerate(zip(xs.middle, ys.middle, strict=True))
            if np.isfinite(x)
        ]
        distance, place, row = min(found, default=(np.inf, 0, 0))
        return (float(place), row) if distance <= REACH * self.factor else None

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """The point under the hand: several may share a KL."""
        near = self.grid.nearest(self.hand)
        if self._results is None or self.row >= len(self._points):
            return []
        kl, reward = (spread.middle[near] for spread in self._points[self.row])
        over = self._results.sweep.over
        return [(f"{over.symbol} {name(over.values[near])}", "muted"), (f"KL  {shown(kl)}", "kl"),
                (tr("reward  {reward}").format(reward=shown(reward)), "reward")]  # fmt: skip

    def table(self) -> tuple[list[Column], Rows]:
        """One row a point: its value, KL and reward with their middle halves."""
        columns = [Column("value", tr("Setting"), chars=9)]
        for key, unit in (("KL", "nats"), (tr("Reward"), "")):
            columns += [
                Column(key, tr("{key}, median").format(key=key), unit=unit),
                Column(f"{key} low", tr("Quarter below"), unit=unit),
                Column(f"{key} high", tr("Quarter above"), unit=unit),
            ]
        if self._results is None:
            return columns, []
        sweep = self._results.sweep
        columns[0] = Column("value", sweep.over.title, chars=9, kind="number" if self.grid.numeric else "text")
        if sweep.across is not None:
            columns.insert(0, Column("row", sweep.across.title, chars=10, kind="text"))
        told: list[list[object]] = []
        for row, (kl, reward) in enumerate(self._points):
            for place, value in enumerate(sweep.over.values):
                first: list[object] = [] if sweep.across is None else [name(sweep.rows[row])]
                told.append([*first, value, *(float(limit[place]) for limit in (*kl, *reward))])
        return columns, told
