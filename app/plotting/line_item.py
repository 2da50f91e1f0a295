"""The graphics item of a line in a line chart: its stroke, its band or crosses, and its markers."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import QGraphicsItem

from app.plotting.band import Ribbon
from app.plotting.line_data import Line
from app.plotting.pyramid import Pyramid
from app.theme.tokens import Theme

MOST = 700
"""Maximum number of points drawn. If there are more, a bucket of neighbours is reduced to its lowest and highest
value."""
WIDTH, BOLD_WIDTH = 1.6, 3.0
"""Width of a line in pixels: at 100 %, and in bold themes at any scale."""


class LineItem(pg.PlotCurveItem):  # type: ignore[misc]
    """The graphics item of one line. It is created once and then shows one :class:`Line` after another."""

    def __init__(self, line: Line) -> None:
        super().__init__(connect="finite", skipFiniteCheck=False, antialias=True)
        self.line = line
        self._theme: Theme | None = None
        self._factor = 1.0
        self.ribbon = Ribbon(line.meaning)
        self.ribbon.setParentItem(self)
        self.ribbon.setFlag(self.GraphicsItemFlag.ItemStacksBehindParent)
        self._crosses = pg.PlotCurveItem(connect="pairs", antialias=False)
        self._crosses.setParentItem(self)
        self._markers = pg.ScatterPlotItem(pxMode=True)
        self._markers.setParentItem(self)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)  # a moving cursor needs no new stroke

    def show_line(self, line: Line) -> None:
        before, self.line = self.line, line
        x, y = np.asarray(line.x, float), np.asarray(line.y, float)
        known = np.isfinite(x) & np.isfinite(y)
        if line.marker:
            x, y = x[known], y[known]
        self.setData(*_thinned(x, y))
        self._markers.setData(x=x if line.marker else [], y=y if line.marker else [])
        self._show_limits(line, known)
        self.setZValue(line.z)
        self.setVisible(True)
        look = ("meaning", "style", "marker", "filled", "size", "strength", "band_strength")
        if self._theme is not None and any(getattr(before, name) != getattr(line, name) for name in look):
            self.apply_style(self._theme, self._factor)

    def _show_limits(self, line: Line, known: np.ndarray) -> None:
        """Show a band around the line, or crosses if there are limits of x as well."""
        if line.low is None or line.high is None:
            self.ribbon.clear_limits()
            self._crosses.setData([], [])
        elif line.left is None or line.right is None:
            self.ribbon.set_limits(line.x, line.low, line.high)
            self._crosses.setData([], [])
        else:
            self.ribbon.clear_limits()
            x = np.stack([line.left, line.right, line.x, line.x], axis=-1)[known]
            y = np.stack([line.y, line.y, line.low, line.high], axis=-1)[known]
            self._crosses.setData(x.reshape(-1), y.reshape(-1))

    def apply_style(self, theme: Theme, scale: float) -> None:
        self._theme, self._factor, line = theme, scale, self.line
        colour = theme.faint(line.meaning, line.strength)
        pen = theme.pen(line.meaning, BOLD_WIDTH if theme.bold else WIDTH * scale, line.style)
        pen.setColor(colour)
        self.setPen(pen)
        self.opts["antialias"] = not theme.bold
        self.ribbon.meaning = line.meaning
        self.ribbon.apply_style(theme, scale)
        self.ribbon.set_strength(line.strength * line.band_strength)
        cross = theme.pen(line.meaning, 2.0 if theme.bold else 1.0 * scale, Qt.PenStyle.SolidLine)
        cross.setColor(theme.faint(line.meaning, 0.6))
        self._crosses.setPen(cross)
        self._markers.setPen(pg.mkPen(colour, width=2.0 if theme.bold else 1.2 * scale))
        self._markers.setBrush(QBrush(colour if line.filled else theme.colour("ground")))
        self._markers.setSize(line.size * scale)
        self._markers.setSymbol(line.marker or "o")


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``MOST`` points that look the same. Longer input must be evenly spaced in x."""
    if len(x) <= MOST:
        return x, y
    places, values = Pyramid(y).window(0, len(y), MOST // 2)
    return np.interp(places, np.arange(len(x)), x), values
