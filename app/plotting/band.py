"""The area between two lines: the middle half of many runs behind their median, or the range of a run's repeats."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QGraphicsItem

from app.theme.tokens import Theme

STRENGTH = 0.15
"""Opacity of the area. Low, because several areas can overlap."""
MOST = 600
"""Maximum number of points drawn. If there are more, adjacent points are merged into one that spans the limits of all
of them.
"""


class Ribbon(pg.PlotCurveItem):  # type: ignore[misc]
    """A translucent area between a lower and an upper line."""

    def __init__(self, meaning: str) -> None:
        super().__init__(pen=None, fillLevel="enclosed", antialias=False)
        self.meaning = meaning
        self._share = 1.0
        self._theme: Theme | None = None
        self._ends = (float("nan"), float("nan"))

    def set_limits(self, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Fill from ``low`` to ``high`` over the ascending positions ``x``, (n,) each.

        Positions without limits are skipped.
        """
        x, low, high = (np.asarray(values, float) for values in (x, low, high))
        there = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
        x, low, high = x[there], low[there], high[there]
        self._ends = (float(low.min()), float(high.max())) if len(x) else (float("nan"), float("nan"))
        if len(x) < 2:
            self.setData([], [])
            return
        every = -(-len(x) // MOST)
        if every > 1:
            starts = np.arange(0, len(x), every)
            low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
            x = np.linspace(x[0], x[-1], len(starts))
        self.setData(np.concatenate((x, x[::-1])), np.concatenate((low, high[::-1])))

    def clear_limits(self) -> None:
        nothing = np.empty(0)
        self.set_limits(nothing, nothing, nothing)

    def extent(self) -> tuple[float, float]:
        """Return the lowest and the highest value of the area, or (NaN, NaN) if it is empty."""
        return self._ends

    def set_strength(self, share: float) -> None:
        """Set the opacity relative to the usual one, less than 1 for an area behind others."""
        if share != self._share:
            self._share = share
            if self._theme is not None:
                self.apply_style(self._theme, 1.0)

    def apply_style(self, theme: Theme, scale: float) -> None:
        self._theme = theme
        tint = QColor(theme.colour(self.meaning))
        tint.setAlphaF(STRENGTH * self._share)
        self.setBrush(QBrush(tint))


MEDIAN_STRENGTH = 0.6
"""Opacity of the median."""


class RepeatBand(Ribbon):
    """The area between the lowest and the highest repeat, with their median. It is redrawn when updates are added."""

    def __init__(self, meaning: str) -> None:
        super().__init__(meaning)
        self._middle = pg.PlotCurveItem(connect="finite", skipFiniteCheck=False, antialias=True)
        self._middle.setParentItem(self)
        self._shown: object = None
        for item in (self, self._middle):
            item.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    def show_runs(self, values: np.ndarray | None) -> None:
        """Draw ``values`` (n, S) of S repeats at updates 1 to n. None clears the area.

        Passing the same array again costs nothing.
        """
        if values is self._shown:
            return
        self._shown = values
        if values is None or not len(values):
            self.clear_limits()
            self._middle.setData([], [])
            return
        x = np.arange(1.0, len(values) + 1)
        self.set_limits(x, values.min(axis=-1), values.max(axis=-1))
        self._middle.setData(x, np.median(values, axis=-1))

    def apply_style(self, theme: Theme, scale: float) -> None:
        super().apply_style(theme, scale)
        pen = theme.pen(self.meaning, 2.0 if theme.bold else 1.2 * scale, Qt.PenStyle.DashLine)
        pen.setColor(theme.faint(self.meaning, MEDIAN_STRENGTH))
        self._middle.setPen(pen)
