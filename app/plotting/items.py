"""Event marks, cursor lines, areas and earlier series of a plot.

The plot creates and styles each of them once, then sets its data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QGraphicsItem

from app.plotting.pyramid import Pyramid
from app.theme.tokens import LIGHT, Theme

AREA_STRENGTH, MEDIAN_STRENGTH = 0.15, 0.6
"""Opacity of an area, low because several can overlap, and of the median in it."""
MOST = 600
"""Maximum number of points of an area. If there are more, adjacent points are merged into one that spans the limits of
all of them.
"""
GHOST, MARKED, BOLD = (1.0, 0.45), (2.0, 1.0), 2.0
"""Width in pixels at 100 % and opacity of earlier series and of the emphasized one, and the factor that replaces the
scale in bold themes."""


class Marks(pg.PlotCurveItem):  # type: ignore[misc]
    """Events, for example updates at which a setting was changed, as short ticks on the x axis."""

    PIXELS = 9

    def __init__(self) -> None:
        super().__init__(connect="pairs", antialias=False)
        self.places = np.empty(0)
        self._pixels = float(self.PIXELS)
        self._drawn: tuple[object, ...] | None = None

    def set_places(self, x: np.ndarray) -> None:
        """Set the positions of the events, (n,), in ascending order."""
        if not np.array_equal(x, self.places):
            self.places, self._drawn = np.asarray(x, float), None

    def refresh(self, low: float, high: float, base: float, pixel: float) -> None:
        """Draw the ticks of the events between x = ``low`` and ``high``.

        Args:
            low, high: visible range of x.
            base: y of the lower ends of the ticks.
            pixel: height of a pixel in y.
        """
        stamp = (low, high, base, pixel)
        if stamp != self._drawn:
            self._drawn = stamp
            shown = self.places[(self.places >= low) & (self.places <= high)]
            self.setVisible(bool(shown.size))  # the bounds of an item without points are computed again and again
            heights = np.tile([base, base + self._pixels * pixel], len(shown))
            self.setData(np.repeat(shown, 2), heights)

    def apply_style(self, theme: Theme, scale: float) -> None:
        self.setPen(theme.pen("text", 3.0 if theme.bold else 2.0 * scale, Qt.PenStyle.SolidLine))
        self._pixels, self._drawn = self.PIXELS * scale, None


class Band(pg.PlotCurveItem):  # type: ignore[misc]
    """A vertical line over the full height: the cursor, or the position under the pointer."""

    def __init__(self, meaning: str, width: float) -> None:
        super().__init__(antialias=False)
        self.meaning, self._width = meaning, width
        self.place: float | None = None
        self._drawn: tuple[object, ...] | None = None

    def refresh(self, bottom: float, top: float, pixel: float) -> None:
        """Extend the line from ``bottom`` to ``top``, where a pixel has the width ``pixel`` in x."""
        stamp = (self.place, bottom, top)
        if stamp != self._drawn:
            self._drawn = stamp
            self.setVisible(self.place is not None)
            if self.place is not None:
                self.setData([self.place, self.place], [bottom, top])
                # measuring the points would take longer than painting the line
                reach = self.opts["pen"].widthF() * pixel
                self._boundingRect = QRectF(self.place - reach, bottom, 2 * reach, top - bottom)

    def apply_style(self, theme: Theme, scale: float) -> None:
        width = self._width * max(scale, 2.0 if theme.bold else 1.0)
        self.setPen(theme.pen(self.meaning, width, Qt.PenStyle.SolidLine))


class Ribbon(pg.PlotCurveItem):  # type: ignore[misc]
    """A translucent area between a lower and an upper line."""

    def __init__(self, meaning: str) -> None:
        super().__init__(pen=None, fillLevel="enclosed", antialias=False)
        self.meaning = meaning
        self._share = 1.0
        self._theme: Theme = LIGHT
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
            self.apply_style(self._theme, 1.0)

    def apply_style(self, theme: Theme, scale: float) -> None:
        self._theme = theme
        tint = QColor(theme.colour(self.meaning))
        tint.setAlphaF(AREA_STRENGTH * self._share)
        self.setBrush(QBrush(tint))


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
        for item, (width, strength) in ((self, GHOST), (self.marked, MARKED)):
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
