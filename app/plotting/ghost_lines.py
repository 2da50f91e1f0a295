"""Earlier series as thin lines behind a curve, redrawn only when another part of the axis is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGraphicsItem

from app.plotting.pyramid import Pyramid
from app.theme.tokens import Theme

STRENGTH, MARKED_STRENGTH = 0.45, 1.0
"""Opacity of the lines, and of the emphasized line."""
WIDTH, MARKED_WIDTH, BOLD = 1.0, 2.0, 2.0
"""Widths in pixels at 100 % of the lines and of the emphasized line, and the factor that replaces the scale in bold
themes."""


class GhostLines(pg.PlotCurveItem):  # type: ignore[misc]
    """Series over updates 1, 2, ... as one item, in the colour of the curve in front.

    Attributes:
        marked: the graphics item of the emphasized series.
    """

    def __init__(self, meaning: str) -> None:
        super().__init__(connect="finite", skipFiniteCheck=False, antialias=True)
        self.meaning = meaning
        self._series: tuple[Pyramid, ...] = ()
        self._drawn: tuple[object, ...] = ()
        self._ends = (float("nan"), float("nan"))
        self.marked = pg.PlotCurveItem(connect="finite", skipFiniteCheck=False, antialias=True)
        self.marked.setParentItem(self)
        self._pointed: Pyramid | None = None
        for item in (self, self.marked):
            # a moving cursor does not cause the line to be stroked again
            item.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    def set_series(self, series: Sequence[Pyramid], pointed: Pyramid | None = None) -> None:
        """Set the series for the next ``refresh``. ``pointed`` is the series to emphasize."""
        self._series, self._pointed = tuple(series), pointed

    def refresh(self, low: float, high: float, pixels: int) -> None:
        """Draw the part between x = ``low`` and ``high`` for ``pixels`` columns."""
        versions = tuple(series.version for series in self._series)
        stamp = (self._series, versions, self._pointed, low, high, pixels)
        if stamp == self._drawn:
            return
        self._drawn = stamp
        x, y = _joined(self._series, low, high, pixels)
        self.setData(x, y)
        finite = y[np.isfinite(y)]
        self._ends = (float(finite.min()), float(finite.max())) if finite.size else (float("nan"), float("nan"))
        self.marked.setData(*_joined([] if self._pointed is None else [self._pointed], low, high, pixels))

    def extent(self) -> tuple[float, float]:
        """Return the lowest and the highest value drawn, or (NaN, NaN) if there is none."""
        return self._ends

    def apply_style(self, theme: Theme, scale: float) -> None:
        wider = BOLD if theme.bold else scale
        for item, width, strength in ((self, WIDTH, STRENGTH), (self.marked, MARKED_WIDTH, MARKED_STRENGTH)):
            pen = theme.pen(self.meaning, width * wider, Qt.PenStyle.SolidLine)
            pen.setColor(theme.faint(self.meaning, strength))
            item.setPen(pen)


def _joined(series: Sequence[Pyramid], low: float, high: float, pixels: int) -> tuple[np.ndarray, np.ndarray]:
    """Join all series between x = ``low`` and ``high``, with a gap after each."""
    start, stop = int(np.floor(low - 1)), int(np.ceil(high - 1)) + 1
    xs, ys = [], []
    for one in series:
        places, values = one.window(start, stop, pixels)
        xs += [places + 1.0, np.full(1, np.nan)]
        ys += [values, np.full(1, np.nan)]
    return (np.concatenate(xs), np.concatenate(ys)) if xs else (np.empty(0), np.empty(0))
