"""The axes of a plot around its view box, like pyqtgraph's PlotItem without menus, titles and the other two axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter, QPicture
from PySide6.QtWidgets import QGraphicsSceneResizeEvent, QStyleOptionGraphicsItem, QWidget

from app.plotting.axis import X_PITCH, Axes, Scale, Tick, area_in, paint_axes, round_ticks, tick_text, y_ticks
from app.theme.tokens import LIGHT, Theme


class Frame(pg.GraphicsWidget):  # type: ignore[misc]
    """Grid, ticks and labels, with the view box in front of them.

    Attributes:
        x_names: (position, text) on the x axis instead of numbers; None for numbers.
        number_of: maps an integer position on the x axis to its displayed number, or to None for no number. None
            displays the positions themselves.
        named: whether to reserve space for a y label even if there is none, to align with a plot above or below.
        bare: whether the x axis has no numbers and little height, because the plot below shows the same numbers.
    """

    def __init__(self, x: Scale, y: Scale) -> None:
        super().__init__()
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.x, self.y = x, y
        self.x_names: Sequence[Tick] | None = None
        self.number_of: Callable[[int], int | None] | None = None
        self.named = self.bare = False
        self._theme: Theme = LIGHT
        self._factor, self._right = 1.0, 0.0
        self._drawn: QPicture | None = None
        self.view_box = pg.ViewBox(parent=self, enableMenu=False)
        self.view_box.sigRangeChanged.connect(self.redraw)

    def set_look(self, theme: Theme, factor: float, right: float) -> None:
        """Set the theme, the scale, and the width in pixels reserved to the right of the data."""
        self._theme, self._factor, self._right = theme, factor, right
        self.arrange()

    def arrange(self) -> None:
        """Lay out the view box again after a change to the axes."""
        self.view_box.setGeometry(self._area())
        self.redraw()

    def redraw(self) -> None:
        self._drawn = None
        self.update()

    @property
    def below(self) -> float:
        """Height in pixels of the x axis."""
        return float(self.size().height() - self._area().bottom())

    @property
    def labels(self) -> tuple[str, str]:
        return ("" if self.bare else self.x.text), self.y.text

    def _area(self) -> QRectF:
        size, labels = QSizeF(self.size()), self.labels
        return area_in(size, self._theme, self._factor, labels, right=self._right, named=self.named, bare=self.bare)

    @property
    def axes(self) -> Axes:
        """Mapping between the range shown in the view box and the pixels of the frame."""
        (left, right), (low, high) = self.view_box.viewRange()
        return Axes(area=self.view_box.geometry(), x=(left, right), y=(low, high), pad=0.0)

    def x_ticks(self) -> list[Tick]:
        (low, high), wide = self.axes.x, self.axes.area.width()
        if self.bare:
            return []
        if self.x_names is not None:
            return [(place, text) for place, text in self.x_names if low <= place <= high]
        places = round_ticks(low, high, wide, X_PITCH * self._theme.type_unit(self._factor), whole=self.x.whole)
        if self.number_of is None:
            return places
        numbers = [(place, self.number_of(round(place))) for place, _ in places]
        return [(place, "" if number is None else tick_text(number, 1.0)) for place, number in numbers]

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        if self._drawn is None:
            self._drawn = QPicture()
            recorder = QPainter(self._drawn)
            recorder.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
            axes = self.axes
            ticks = y_ticks(axes, self._theme, self._factor, whole=self.y.whole)
            paint_axes(recorder, axes, self._theme, self._factor, self.x_ticks(), ticks, self.labels)
            recorder.end()
        self._drawn.play(painter)

    def resizeEvent(self, event: QGraphicsSceneResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "view_box"):
            self.arrange()
