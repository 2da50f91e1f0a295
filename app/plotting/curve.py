"""One line of a history, drawn with at most two points per pixel column, however long the run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen, QPixmap, QTransform
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from app.plotting.pyramid import Pyramid
from app.theme.tokens import LIGHT, Theme

SMOOTH_UP_TO = 700
"""Maximum number of points of an antialiased, slightly wider line. With more points, this would take too long per
frame."""

MARKED = 150
"""Maximum number of points of a sparse line at which each point is marked by a dot."""

AROUND = 4.0
"""Distance in pixels around a point that contains its stroke, even if the line is wide and antialiased."""

NOISE = 0.05
"""Minimum mean height of a bucket, as a share of the line's range, at which a thinned line is drawn without dashes."""


class Curve(pg.PlotCurveItem):  # type: ignore[misc]
    """A line through the values of a series.

    Its pixels are cached, so that a moving cursor does not cause it to be stroked again. While the series grows and the
    axes stay the same, only the new part is stroked.

    Attributes:
        label: text at the end of the line.
        meaning: its colour and line style, by the theme's name.
        series: its data; assign another series to show another run.
        first: x of the first value (1 for updates).
        keeps_pixels: whether pixels are cached. Set to False for vector output, which would otherwise contain pixels.
        stale: x to the right of which the cached pixels are outdated; infinity if none are.
        sparse: whether the series has only occasional values, which are marked by dots and joined by the line.
    """

    def __init__(self, key: str, label: str, meaning: str, series: Pyramid, first: float = 1.0) -> None:
        super().__init__(connect="finite", skipFiniteCheck=False)
        self.key, self.label, self.meaning, self.series, self.first = key, label, meaning, series, first
        self.sparse = False
        self._marks: pg.ScatterPlotItem | None = None
        self._reach = -np.inf
        self._theme: Theme = LIGHT
        self._drawn: tuple[object, ...] | None = None
        self._manner: tuple[bool, bool] | None = None
        self._factor = 1.0
        self._boundingRect: QRectF | None = None
        self._pixel = 0.0
        """Width of a pixel in x."""
        self.xs, self.ys = np.empty(0), np.empty(0)
        self._extent: tuple[float, float] | None = None
        self.keeps_pixels = True
        self._pixels = QPixmap()
        self._kept_view: tuple[QTransform, QSize, float] | None = None
        """The view for which the cached pixels were painted."""
        self.stale = -np.inf

    def apply_style(self, theme: Theme, factor: float) -> None:
        self._theme, self._factor, self._manner, self._drawn = theme, factor, None, None

    def refresh(self, low: float, high: float, pixels: int) -> None:
        """Prepare the part between x = ``low`` and ``high`` for ``pixels`` columns, if anything has changed."""
        start = int(np.floor(low - self.first))
        stop = int(np.ceil(high - self.first)) + 1
        # The cost of wide lines depends on the number of points. Strokes no further apart than their width leave no
        # gaps.
        columns = max(3 * pixels // 4, 1) if self._theme.bold else pixels
        stamp = (self.series, self.series.version, start, stop, columns, self.first)
        if stamp == self._drawn:
            return
        self._extent = None
        before, self._drawn = self._drawn, stamp
        grown = before is not None and before[0] is self.series and before[2:] == stamp[2:]
        manner, xs, ys = self._manner, self.xs, self.ys
        places, self.ys = self.series.window(start, stop, columns)
        self._reach = float(places[-1] + self.first) if len(places) else -np.inf
        if self.sparse:
            known = np.isfinite(self.ys)
            places, self.ys = places[known], self.ys[known]
        self.xs = places + self.first
        self._choose_pen(thinned=not self.sparse and len(self.xs) < min(stop, len(self.series)) - max(start, 0))
        self._pixel = (high - low) / pixels
        if grown and manner == self._manner and self._divisible():
            self._continue(_common(xs, ys, self.xs, self.ys), len(xs))
        else:
            self.setData(self.xs, self.ys)
        if self.sparse:
            self._mark()

    def _divisible(self) -> bool:
        """Return whether a part of the line can be stroked separately with the same result.

        The line must be antialiased and wide. A dashed line must have no gaps, because dashes restart after a gap. A
        part of a solid line then has exactly the same pixels as the full line. In a dashed line, a pixel at the end of
        a dash can differ by 1 or 2 out of 255, because Qt rounds differently along another path.
        """
        pen = self.opts["pen"]
        whole = pen.style() is Qt.PenStyle.SolidLine or bool(np.isfinite(self.ys).all())
        return bool(self.opts["antialias"]) and pen.widthF() > 1 and whole

    def _continue(self, common: int, before: int) -> None:
        """Extend the line, and mark the pixels to the right of its unchanged points as outdated.

        Args:
            common: number of leading points that have not changed.
            before: number of points drawn so far.
        """
        if common == len(self.xs) == before:
            return
        stale = min(float(self.xs[common - 1]), self.stale) if common else -np.inf
        if stale == -np.inf:
            self.setData(self.xs, self.ys)
            return
        self.xData, self.yData = self.xs, self.ys
        self.path, self.stale = None, stale
        area = self.boundingRect()
        self.update(area.adjusted(stale - (AROUND + 1) * self._pixel - area.left(), 0, 0, 0))

    def setData(self, *args: Any, **options: Any) -> None:
        """Set new points and repaint the entire line."""
        self.stale = -np.inf
        super().setData(*args, **options)

    def boundingRect(self) -> QRectF:
        """Return the entire view, so that the rectangle does not change while the series grows."""
        box = self.getViewBox()
        if self._boundingRect is None and box is not None:
            self._boundingRect = box.viewRect()
        return QRectF() if self._boundingRect is None else self._boundingRect

    def paint(self, p: QPainter, opt: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the cached pixels after updating the outdated ones."""
        if widget is None or not self.keeps_pixels:
            super().paint(p, opt, widget)
            return
        world = p.worldTransform()
        self._stroke_stale(world, opt, widget)
        p.resetTransform()
        p.drawPixmap(0, 0, self._pixels)
        p.setWorldTransform(world)

    def _stroke_stale(self, world: QTransform, opt: QStyleOptionGraphicsItem, widget: QWidget) -> None:
        """Update the cached pixels: those to the right of the first change, or all of them if the view has changed."""
        density = widget.devicePixelRatioF()
        view = world, widget.size(), density
        if view != self._kept_view:
            self._kept_view, self.stale = view, -np.inf
            self._pixels = QPixmap(widget.size() * density)
            self._pixels.setDevicePixelRatio(density)
        if self.stale == np.inf:
            return
        whole = self.stale == -np.inf
        if whole:
            self._pixels.fill(Qt.GlobalColor.transparent)
        painter = QPainter(self._pixels)
        if whole:
            painter.setWorldTransform(world)
            super().paint(painter, opt, widget)
        else:
            left = math.floor(world.map(QPointF(self.stale, 0)).x() - AROUND)
            painter.setClipRect(left, 0, widget.width() - left, widget.height())
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
            painter.fillRect(left, 0, widget.width() - left, widget.height(), Qt.GlobalColor.transparent)
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
            painter.setWorldTransform(world)
            self.stroke_from(self.stale - 2 * AROUND * self._pixel, painter)
        painter.end()
        self.stale = np.inf

    def stroke_from(self, x: float, painter: QPainter) -> None:
        """Stroke the line from the last point to the left of ``x``. Dashes continue those to the left."""
        skipped = max(int(np.searchsorted(self.xs, x)) - 1, 0)
        pen = QPen(self.opts["pen"])
        if pen.style() is not Qt.PenStyle.SolidLine:
            pixels = painter.deviceTransform()
            xs, ys = self.xs[: skipped + 1] * pixels.m11(), self.ys[: skipped + 1] * pixels.m22()
            pen.setDashOffset(float(np.hypot(np.diff(xs), np.diff(ys)).sum()) / pen.widthF())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen)
        painter.drawPath(self.generatePath(self.xs[skipped:], self.ys[skipped:]))

    def _mark(self) -> None:
        """Mark each value of a sparse series by a dot, so that the line between them is not mistaken for data."""
        if self._marks is None:
            self._marks = pg.ScatterPlotItem(pxMode=True)
            self._marks.setParentItem(self)
        few = len(self.xs) <= MARKED
        self._marks.setData(
            self.xs if few else [],
            self.ys if few else [],
            size=round(5 * self._factor),
            pen=None,
            brush=self._theme.colour(self.meaning),
        )

    def end(self) -> tuple[float, float] | None:
        """Return the point at which the label is placed: the last finite point, moved to the right end if sparse."""
        finite = np.flatnonzero(np.isfinite(self.ys))
        if self.sparse and finite.size:  # its label is placed with those of the other lines
            return max(self._reach, float(self.xs[finite[-1]])), float(self.ys[finite[-1]])
        return (float(self.xs[finite[-1]]), float(self.ys[finite[-1]])) if finite.size else None

    def extent(self) -> tuple[float, float]:
        """Return the smallest and the largest finite value drawn, or (NaN, NaN) if there is none."""
        if self._extent is None:
            finite = self.ys[np.isfinite(self.ys)]
            self._extent = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
        return self._extent

    def at(self, x: float) -> float:
        """Return the exact value of the series at ``x``. NaN outside the series."""
        place = round(x - self.first)
        return float(self.series.values[place]) if 0 <= place < len(self.series) else float("nan")

    def _choose_pen(self, *, thinned: bool) -> None:
        theme = self._theme
        noisy = thinned and self._noisy()
        smooth = not (theme.bold or noisy) and len(self.xs) <= SMOOTH_UP_TO
        if (smooth, noisy) == self._manner:
            return
        self._manner = (smooth, noisy)
        width = min(1.6 * self._factor, 2.5) if smooth else None
        # Dashes on a line that oscillates within every pixel look like noise, and are slow. The label at its end
        # identifies it.
        self.setPen(theme.pen(self.meaning, width, Qt.PenStyle.SolidLine if noisy else None))
        self.opts["antialias"] = smooth

    def _noisy(self) -> bool:
        """Return whether the line oscillates within each bucket by a large share of its range."""
        low, high = self.extent()
        with np.errstate(invalid="ignore"):
            tall = np.abs(self.ys[1::2] - self.ys[::2])
        tall = tall[np.isfinite(tall)]
        return bool(tall.size) and float(tall.mean()) > NOISE * (high - low)


def _common(xs: np.ndarray, ys: np.ndarray, other_xs: np.ndarray, other_ys: np.ndarray) -> int:
    """Return the number of leading points that two lines, given as (n,), (n,) and (m,), (m,), have in common. Missing
    values count as equal.
    """
    n = min(len(xs), len(other_xs))
    a, b = ys[:n], other_ys[:n]
    same = (xs[:n] == other_xs[:n]) & ((a == b) | (np.isnan(a) & np.isnan(b)))
    return n if same.all() else int(np.argmin(same))
