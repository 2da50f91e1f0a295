"""Markers, event marks and cursor lines of a plot. The plot creates and styles each of them once, then sets its
data."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush

from app.theme.tokens import HOLLOW, Theme


class Points(pg.ScatterPlotItem):  # type: ignore[misc]
    """Markers in one colour: diamonds ("d") for rewards, dots ("o") for samples."""

    def __init__(self, meaning: str, symbol: str = "o", size: float = 8.0, filled: bool | None = None) -> None:
        super().__init__(symbol=symbol, size=size, pxMode=True)
        self.meaning, self._size = meaning, size
        self._filled = meaning not in HOLLOW if filled is None else filled

    def set_points(self, x: np.ndarray, y: np.ndarray) -> None:
        """Set the coordinates of the points, (n,) each. Points with NaN are omitted."""
        x, y = np.asarray(x, float), np.asarray(y, float)
        there = np.isfinite(x) & np.isfinite(y)
        self.setData(x=x[there], y=y[there])

    def apply_style(self, theme: Theme, scale: float) -> None:
        colour = theme.colour(self.meaning)
        self.setPen(pg.mkPen(colour, width=2.4 if theme.bold else 1.4 * scale))
        # A hollow marker is filled with the background, so that it remains legible in front of lines.
        self.setBrush(QBrush(colour if self._filled else theme.colour("ground")))
        self.setSize(self._size * scale)


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
