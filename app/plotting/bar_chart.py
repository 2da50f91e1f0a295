"""The bar chart: bars over named places, or over the intervals of a continuous axis."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QSizeF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.plotting.axis import (
    X_PITCH,
    Axes,
    Scale,
    Tick,
    area_in,
    named_ticks,
    padding,
    paint_axes,
    round_ticks,
    y_ticks,
)
from app.plotting.bar_data import BarPicture
from app.plotting.bar_painter import diamond_near, paint_picture
from app.plotting.labels import paint_read_out, read_out_box, read_out_place
from app.plotting.place_chart import REACH, PlaceChart
from app.plotting.ranges import held_range
from app.plotting.table_model import Column, Rows

KEY_STEPS = 40
"""Number of presses of Up from one end of the axis to the other, if no step is given."""
STALE = 0.45
"""Opacity of a picture that is older than the rest of the window."""
NOTHING = BarPicture(names=(), label="", series=(), y=Scale(low=0, high=1))


class BarChart(PlaceChart):
    """Bars over named places, or over the intervals of a continuous axis.

    Attributes:
        picture: the picture shown.
        steps: change of a draggable bar by Up and Down, without and with Shift; None for 1/40 of the axis.
    """

    def __init__(
        self,
        title: str,
        *,
        drag: str = "",
        steps: tuple[float, float] | None = None,
        walks: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(title, drag=drag, walks=walks, parent=parent)
        self.picture = NOTHING
        self.steps = steps
        self._y_range: tuple[float, float] | None = None

    # -- interface for panels
    # -------------------------------------------------------------------------------------------

    def show_picture(self, picture: BarPicture) -> None:
        """Replace the picture by ``picture``."""
        low, high = picture.y.low, picture.y.high
        if low is None or high is None:
            ends = picture.extent()
            fitting = held_range(
                ends[0] if low is None else low,
                max(ends[1], ends[1] if low is None else low),
                self._y_range,
                tight=low is not None,
            )
            low, high = fitting[0] if low is None else low, fitting[1] if high is None else high
        if picture.y != self.picture.y:
            self._y_range = None
        self._y_range = low, high
        self.picture = picture
        chosen = self.chosen if picture.chosen is None else picture.chosen
        self.chosen = min(chosen, max(picture.count - 1, 0))
        self.update()

    def table(self) -> tuple[list[Column], Rows]:
        return self.picture.table()

    @property
    def heights(self) -> dict[str, np.ndarray]:
        """Name of every series -> its heights (n,)."""
        return {series.name: series.heights for series in self.picture.series}

    @property
    def y_range(self) -> tuple[float, float]:
        """Ends of the vertical axis."""
        return self._y_range or (0.0, 1.0)

    @property
    def count(self) -> int:
        return self.picture.count

    @property
    def marked(self) -> int | None:
        return self.picture.chosen

    def reachable(self) -> list[int]:
        """The places that can be selected: on a continuous axis those that have a bar, else all."""
        return [n for n in range(self.picture.count) if self.picture.edges is None or self.picture.top(n)]

    # -- geometry -----------------------------------------------------------------------------------------------------

    @property
    def _labels(self) -> tuple[str, str]:
        """Labels of the axes."""
        picture = self.picture
        return picture.label if picture.x_label is None else picture.x_label, picture.y.text

    def axes(self) -> Axes:
        """The axes with their place in the widget."""
        area = area_in(QSizeF(self.size()), self.theme, self.factor, self._labels)
        return Axes(area=area, x=self.picture.x_range, y=self.y_range, pad=padding(area.height(), self.factor))

    def drag_axes(self) -> Axes:
        return self.axes()

    def pixel_at(self, place: int, height: float) -> QPointF:
        """The point in the widget at ``height`` over the middle of ``place`` (from 0)."""
        return self.axes().at(place + 1.0, height)

    def place_at(self, point: QPointF) -> int | None:
        axes = self.axes()
        place = round(axes.x_of(point.x())) - 1
        return place if axes.area.contains(point) and 0 <= place < self.picture.count else None

    def diamond_at(self, point: QPointF) -> int | None:
        return diamond_near(self.picture, self.axes(), point, REACH)

    def key_height(self, way: int, *, leap: bool) -> float:
        low, high = self.y_range
        step = self.steps[leap] if self.steps is not None else (high - low) / KEY_STEPS
        return next((float(s.heights[self.chosen]) for s in self.picture.series if s.is_bar), 0.0) + way * step

    # -- drawing ------------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self.theme
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.fillRect(self.rect(), theme.colour("ground"))
        if self.picture.count:
            painter.setOpacity(STALE if self._stale else 1.0)
            axes = self.axes()
            paint_axes(painter, axes, theme, self.factor, self.x_ticks(axes), self._y_ticks(axes), self._labels)
            painter.setClipRect(axes.area.adjusted(-1, -axes.area.top(), 1, 1))
            paint_picture(painter, self.picture, axes, theme, self.factor)
            painter.setClipping(False)
            painter.setOpacity(1.0)
            if self._hovered is not None and self._hovered < self.picture.count:
                self._paint_hover(painter, axes, self._hovered)
        else:
            self.paint_empty(painter)
        self.paint_focus(painter)

    def x_ticks(self, axes: Axes) -> list[Tick]:
        """Ticks of the x axis: names as far as they fit, or round numbers between the edges of the bars."""
        picture = self.picture
        if picture.edges is None:
            metrics = QFontMetricsF(self.theme.font("digits", self.factor))
            return named_ticks(picture.names, metrics, axes.area.width() / (axes.x[1] - axes.x[0]))
        low, high = float(picture.edges[0]), float(picture.edges[-1])
        ticks = round_ticks(low, high, axes.area.width(), X_PITCH * self.theme.type_unit(self.factor))
        return [(0.5 + (value - low) / (high - low) * picture.count, text) for value, text in ticks]

    def _y_ticks(self, axes: Axes) -> list[Tick]:
        if self.picture.y_ticks is not None:
            return list(self.picture.y_ticks)
        return y_ticks(axes, self.theme, self.factor, whole=self.picture.y.whole)

    def _paint_hover(self, painter: QPainter, axes: Axes, place: int) -> None:
        x = axes.at_x(place + 1.0)
        painter.setPen(
            self.theme.pen("muted", max(self.factor, 2.0 if self.theme.bold else 1.0), Qt.PenStyle.SolidLine)
        )
        painter.drawLine(QPointF(x, axes.area.top()), QPointF(x, axes.area.bottom()))
        lines = self.picture.read(place)
        size = read_out_box(lines, self.theme, self.factor).size()
        painter.translate(read_out_place(size, QPointF(x, axes.area.top() + 4), axes.area))
        paint_read_out(painter, lines, self.theme, self.factor)
        painter.resetTransform()
