"""Several bars at each place, from zero up or down, and levels that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.legend import Entry
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.table_model import Column, Rows
from app.theme.tokens import Theme

ROOM = 0.8
"""Share of a place that its bars fill together."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One bar of every place, or one level over every place.

    Attributes:
        name: what the legend and the table call it.
        meaning: its colour, by the theme's name.
        style: "filled", "outline", "hatch", or "level".
    """

    name: str
    meaning: str
    style: str = "filled"

    @property
    def entry(self) -> Entry:
        """Its mark in a legend."""
        return Entry(self.name, self.meaning, "line" if self.style == "level" else self.style)


class Whiskers(pg.PlotCurveItem):  # type: ignore[misc]
    """A line from a low to a high value at each place: where the middle half of many runs lies."""

    def __init__(self) -> None:
        super().__init__(connect="pairs", antialias=False)

    def set_spans(self, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Give places, low and high ends (n,); those with NaN are left out."""
        there = np.isfinite(low) & np.isfinite(high)
        self.setData(np.repeat(x[there], 2), np.stack([low[there], high[there]], axis=-1).reshape(-1))

    def dress(self, theme: Theme, scale: float) -> None:
        self.setPen(theme.pen("text", 4.0 if theme.bold else 2.5 * scale, Qt.PenStyle.SolidLine))


class GroupedBars(Plot):
    """Bars that are given once by name, and then their heights (A,) each."""

    def __init__(
        self, title: str, label: str, y: Scale, parts: Sequence[Part], reach: float = 0.0,
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        """``reach``: an axis that the data decide spans at least this much, so that rounding never fills it."""
        self._reach = reach
        self._label = label
        super().__init__(title, Scale(label=label, low=0.4, high=5.6, whole=True), y, parent=parent)
        self.parts = tuple(parts)
        self._names: tuple[str, ...] = ()
        self.heights: dict[str, np.ndarray] = {}
        bars = [part for part in parts if part.style != "level"]
        self.width = ROOM / max(len(bars), 1)
        x = np.arange(1.0, 6.0)
        self._bars = {part.name: self.add_bars(x, self.width * 0.86, part.meaning, part.style) for part in bars}
        self._levels = {
            part.name: self.add_levels(x, ROOM + 0.06, part.meaning) for part in parts if part.style == "level"
        }
        self._whiskers = {name: self.add_item(Whiskers(), z=16) for name in self._bars}

    def show_heights(self, heights: dict[str, np.ndarray], names: Sequence[str]) -> None:
        """Draw the heights (A,) of every part at places that are called ``names``."""
        x = np.arange(1.0, len(names) + 1)
        if tuple(names) != self._names:
            self._names = tuple(names)
            self.set_scales(x=Scale(label=self._label, low=0.4, high=len(names) + 0.6, whole=True))
            self.set_x_names([(n + 1.0, name) for n, name in enumerate(names)])
        self.heights = heights
        for n, (name, bars) in enumerate(self._bars.items()):
            there = np.isfinite(heights[name])  # a frame of no height would still be a line
            bars.set_heights(heights[name][there], (x - ROOM / 2 + (n + 0.5) * self.width)[there])
        for name, levels in self._levels.items():
            levels.set_heights(heights[name], x)
        every = np.concatenate([*heights.values(), [0.0, self._reach]])
        every = every[np.isfinite(every)]
        self.set_extent(float(every.min()), float(every.max()))
        self.refresh()

    def show_spans(self, spans: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """Draw a whisker from low to high (A,) on the bars of each part that is named."""
        x = np.arange(1.0, len(self._names) + 1)
        nothing = np.full(len(x), np.nan)
        for n, (name, whiskers) in enumerate(self._whiskers.items()):
            whiskers.set_spans(x - ROOM / 2 + (n + 0.5) * self.width, *spans.get(name, (nothing, nothing)))

    def table(self) -> tuple[list[Column], Rows]:
        """One row a place."""
        columns = [Column("place", self._label.capitalize(), kind="text")]
        columns += [Column(part.name, part.name, chars=9, kind="signed") for part in self.parts]
        found = [self.heights[part.name] for part in self.parts] if self.heights else []
        return columns, [[name, *(float(values[n]) for values in found)] for n, name in enumerate(self._names)]

    def read_at(self, x: float) -> list[tuple[str, str]]:
        place = round(x) - 1
        if not 0 <= place < len(self._names) or not self.heights:
            return []
        said = [(f"{p.name}  {shown(float(self.heights[p.name][place]), 6)}", p.meaning) for p in self.parts]
        return [(f"{self._label} {self._names[place]}", "muted"), *said]
