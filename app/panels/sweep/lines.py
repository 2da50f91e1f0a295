"""A median with the middle half of the seeds around it, and the line that theory draws."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush

from app.panels.sweep.results import Spread
from app.plotting.band import Ribbon
from app.theme.tokens import Theme


class MedianLine(pg.PlotCurveItem):  # type: ignore[misc]
    """Marks at the medians, a line through them, and a band from quartile to quartile.

    Attributes:
        meaning: its colour, by the theme's name.
        symbol: the shape of its marks; empty draws none.
    """

    def __init__(self, meaning: str, symbol: str = "o", line: Qt.PenStyle = Qt.PenStyle.SolidLine) -> None:
        super().__init__(connect="finite", skipFiniteCheck=False, antialias=True)
        self.meaning, self.symbol, self._line = meaning, symbol, line
        self._share, self._theme, self._factor = 1.0, None, 1.0  # type: tuple[float, Theme | None, float]
        self.band = Ribbon(meaning)
        self.band.setParentItem(self)
        self.band.setFlag(self.GraphicsItemFlag.ItemStacksBehindParent)
        self.marks = pg.ScatterPlotItem(symbol=symbol or "o", pxMode=True)
        self.marks.setParentItem(self)
        self.ends = (np.nan, np.nan)

    def set_spread(self, x: np.ndarray, spread: Spread, *, band: bool = True) -> None:
        """Give the places (n,) and what lies there; places without numbers are left out."""
        known = np.isfinite(spread.middle) & np.isfinite(x)
        x, middle, low, high = x[known], spread.middle[known], spread.low[known], spread.high[known]
        self.setData(x, middle)
        self.marks.setData(x=x if self.symbol else [], y=middle if self.symbol else [])
        ends = (low, high) if band else (middle, middle)
        self.band.set_limits(x if band else x[:0], *(limit[: len(x) if band else 0] for limit in (low, high)))
        self.ends = (float(ends[0].min()), float(ends[1].max())) if len(x) else (np.nan, np.nan)

    def clear_line(self) -> None:
        """Draw nothing."""
        nothing = np.empty(0)
        self.set_spread(nothing, Spread(nothing, nothing, nothing))

    def end(self) -> tuple[float, float] | None:
        """The last median."""
        return (float(self.xData[-1]), float(self.yData[-1])) if self.xData is not None and len(self.xData) else None

    def set_strength(self, share: float) -> None:
        """Less than 1 for a line that stands behind others."""
        if share != self._share:
            self._share = share
            if self._theme is not None:
                self.dress(self._theme, self._factor)

    def dress(self, theme: Theme, scale: float) -> None:
        self._theme, self._factor = theme, scale
        colour = theme.faint(self.meaning, self._share)
        pen = theme.pen(self.meaning, 3.0 if theme.bold else 1.6 * scale, self._line)
        pen.setColor(colour)
        self.setPen(pen)
        self.band.meaning = self.meaning
        self.band.dress(theme, scale)
        self.band.set_strength(self._share)
        self.marks.setPen(pg.mkPen(colour, width=2.0 if theme.bold else 1.2 * scale))
        self.marks.setBrush(QBrush(colour if self.symbol in ("o", "") else theme.colour("ground")))
        self.marks.setSize(6 * scale)


class TheoryLine(pg.PlotCurveItem):  # type: ignore[misc]
    """The exact optimum: dashed, in the colour of text."""

    def __init__(self) -> None:
        super().__init__(connect="finite", antialias=True)

    def set_points(self, x: np.ndarray, y: np.ndarray) -> None:
        """Give the line (n,), (n,)."""
        self.setData(x, y)

    def end(self) -> tuple[float, float] | None:
        """Its last point."""
        return (float(self.xData[-1]), float(self.yData[-1])) if self.xData is not None and len(self.xData) else None

    def extent(self) -> tuple[float, float]:
        """Smallest and largest value."""
        there = self.yData is not None and len(self.yData)
        return (float(self.yData.min()), float(self.yData.max())) if there else (np.nan, np.nan)

    def dress(self, theme: Theme, scale: float) -> None:
        self.setPen(theme.pen("text", 3.0 if theme.bold else 1.3 * scale, Qt.PenStyle.DashLine))
