"""The base of plots: axes in the program's style, ranges that do not jump, labels at the ends of lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QGraphicsScene, QGraphicsView, QSizePolicy, QWidget

from app.plotting.axis import Scale, padding
from app.plotting.curve import Curve
from app.plotting.frame import Frame
from app.plotting.items import Marks, Points
from app.plotting.labels import Words, line_ends
from app.plotting.pyramid import Pyramid
from app.plotting.ranges import held_range
from app.theme.tokens import LIGHT, Theme

Item = TypeVar("Item")


class Canvas(pg.GraphicsView):  # type: ignore[misc]
    """Graphics items on two axes. Add items once, then set their data and call ``refresh`` once per frame.

    Attributes:
        curves: the lines; if not all labels fit, the first ones are shown.
        theme, factor: the theme and the scale.
        frame: the axes, with the view box that contains the items.
        margin: width in pixels of the labels to the right of the plot.
        reach: a value that an x axis without fixed ends includes in addition to the curves.
    """

    def __init__(self, x: Scale, y: Scale, *, zoomable: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # filling a plain background costs less than copying it
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)  # there are only few items, all visible
        self.theme, self.factor = LIGHT, 1.0
        self.curves: list[Curve] = []
        self._items: list[Any] = []
        self._extent: tuple[float, float] | None = None
        self._held: dict[str, tuple[float, float] | None] = {"x": None, "y": None}
        self._y_range: tuple[float, float, float] | None = None
        self._was_empty = True
        self.margin = self.reach = 0.0
        self._numbered = 0
        self._zoomed = self._refreshing = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.enableMouse(False)
        self.frame = Frame(x, y)
        self.setCentralItem(self.frame)
        self.view_box = self.frame.view_box
        self.view_box.disableAutoRange()
        self.view_box.setMouseEnabled(x=zoomable, y=False)
        self.view_box.setBorder(None)
        self.marks = self.add_item(Marks(), z=5)
        self.words = Words(self.frame)

    def close(self) -> bool:
        """Hide the widget without clearing its scene.

        pyqtgraph's own ``close`` clears the scene. This crashes, since Python still holds the items.
        """
        return QWidget.close(self)

    @property
    def x_scale(self) -> Scale:
        """Range and labels of the x axis."""
        return self.frame.x

    @property
    def y_scale(self) -> Scale:
        """Range and labels of the y axis."""
        return self.frame.y

    # -- building -----------------------------------------------------------------------------------------------------

    def add_curve(self, key: str, label: str, meaning: str, series: Pyramid | None = None, first: float = 1.0) -> Curve:
        """Add a line for a series, labelled at its end."""
        curve = Curve(key, label, meaning, Pyramid() if series is None else series, first)
        curve.setZValue(10)
        self.curves.append(curve)
        curve.apply_style(self.theme, self.factor)
        self.view_box.addItem(curve, ignoreBounds=True)
        self._style_margins()
        return curve

    def add_points(self, meaning: str, symbol: str = "o", size: float = 8.0, filled: bool | None = None) -> Points:
        """Add markers without points, and return them."""
        return self.add_item(Points(meaning, symbol, size, filled), z=20)

    def add_item(self, item: Item, z: float = 1.0) -> Item:
        """Add any graphics item that has a method ``apply_style(theme, factor)``."""
        drawn: Any = item
        self._items.append(drawn)
        drawn.setZValue(z)
        drawn.apply_style(self.theme, self.factor)
        self.view_box.addItem(drawn, ignoreBounds=True)
        return item

    # -- appearance ---------------------------------------------------------------------------------------------------

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale."""
        if (theme, scale) != (self.theme, self.factor):
            self.theme, self.factor = theme, scale
            self._apply_style()
            self.refresh()

    def _apply_style(self) -> None:
        theme, scale = self.theme, self.factor
        self.setBackground(theme.colour("ground"))
        for item in (*self._items, self.words):
            item.apply_style(theme, scale)
        for curve in self.curves:
            curve.apply_style(theme, scale)
        self._style_margins()

    def set_marks(self, x: np.ndarray) -> None:
        """Set the positions (n,), in ascending order, of event marks on the x axis."""
        self.marks.set_places(x)

    def set_extent(self, low: float, high: float) -> None:
        """Set the y values spanned by everything except the curves, for a y axis without fixed ends."""
        self._extent = (low, high)

    def set_scales(self, x: Scale | None = None, y: Scale | None = None) -> None:
        """Replace the axes, for example when the number of actions changes."""
        for name, scale in (("x", x), ("y", y)):
            if scale is not None and scale != getattr(self.frame, name):
                setattr(self.frame, name, scale)
                self._held[name] = None
                self.frame.arrange()

    def set_x_names(self, names: Sequence[tuple[float, str]] | None) -> None:
        """Show names instead of numbers on the x axis, given as (position, name). None restores the numbers."""
        if names != self.frame.x_names:
            self.frame.x_names = names
            self.frame.redraw()

    def number_places(self, number_of: Callable[[int], int | None] | None, known: int = 0) -> None:
        """Display other numbers on the x axis, for example the trainer's step numbers in a recorded run.

        The positions of the ticks do not change.

        Args:
            number_of: maps a position to its number, or to None if it has none. None displays the positions themselves.
            known: how many positions have a number, so that the axis is redrawn when there are more; ignored without
                ``number_of``.
        """
        known = 0 if number_of is None else known
        if (self.frame.number_of, self._numbered) != (number_of, known):
            self.frame.number_of, self._numbered = number_of, known
            self.frame.redraw()

    def number_at(self, x: float) -> float:
        """Return the number displayed for position ``x``."""
        number_of = self.frame.number_of
        number = None if number_of is None else number_of(round(x))
        return x if number is None else number

    def set_stale(self, stale: bool) -> None:
        """Dim the picture if it is older than the rest of the window."""
        self.frame.setOpacity(0.45 if stale else 1.0)

    def places(self) -> tuple[float, float] | None:
        """Return the first and the last x with data, or None without data."""
        spans = [(c.first, c.first + len(c.series) - 1) for c in self.curves if len(c.series)]
        if spans:
            return min(a for a, _ in spans), max(b for _, b in spans)
        low, high = self.x_scale.low, self.x_scale.high
        if self.curves or low is None or high is None:
            return None
        return (math.ceil(low), math.floor(high)) if self.x_scale.whole else (low, high)

    # -- drawing ------------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Draw the changes. This costs next to nothing if there are none."""
        if self._refreshing:
            return
        self._refreshing = True
        try:
            self._refresh_x()
            (low, high), pixels = self.view_box.viewRange()[0], max(int(self.view_box.width()), 1)
            for curve in self.curves:
                if curve.isVisible():
                    curve.refresh(low, high, pixels)
            self._refresh_y()
            bottom, top = self.view_box.viewRange()[1]
            base = self._held["y"][0] if self._held["y"] else bottom
            self.marks.refresh(low, high, base, (top - bottom) / max(self.view_box.height(), 1))
            self._place_words()
        finally:
            self._refreshing = False

    def _refresh_x(self) -> None:
        low, high = self.x_scale.low, self.x_scale.high
        span = self.places()
        if span is not None and self._was_empty:
            self._held = {"x": None, "y": None}  # the axes of an empty chart impose no limits on the data
        self._was_empty = span is None
        if low is None or high is None:
            first, last = span or (1.0, 10.0)
            fitting = held_range(
                low if low is not None else first, max(last, first + 1, self.reach), self._held["x"], tight=True
            )
            low, high = (fitting[0] if low is None else low), (fitting[1] if high is None else high)
        if self._held["x"] != (low, high):
            self._held["x"] = (low, high)
            self.view_box.setLimits(xMin=low, xMax=high, minXRange=min(4.0, high - low))
            if not self._zoomed:
                self.view_box.setXRange(low, high, padding=0)

    def _refresh_y(self) -> None:
        follows = None in (self.y_scale.low, self.y_scale.high)
        ends = [v for c in self.curves if c.isVisible() for v in c.extent()] if follows else []
        finite = [v for v in (*ends, *(self._extent or ())) if math.isfinite(v)]
        low, high = self.y_scale.fitting(min(finite, default=math.nan), max(finite, default=math.nan), self._held["y"])
        height = max(self.view_box.height(), 1.0)
        pad = padding(height, self.factor)
        space = pad / (height - 2 * pad) * (high - low)
        if self._y_range != (low, high, space):
            self._held["y"], self._y_range = (low, high), (low, high, space)
            self.view_box.setYRange(low - space, high + space, padding=0)

    def _space(self) -> QRectF:
        """Return the rectangle of the data and of the labels to its right, in the plot item's pixels."""
        area: QRectF = self.frame.mapRectFromItem(self.view_box, self.view_box.rect())
        return area.adjusted(0, 0, self.margin, 0)

    def to_pixels(self, x: float, y: float) -> QPointF:
        """Convert data coordinates to the plot item's pixels."""
        return self.frame.mapFromItem(self.view_box, self.view_box.mapFromView(QPointF(x, y)))  # type: ignore[no-any-return]

    def _place_words(self) -> None:
        ends = [(c, c.end()) for c in self.curves if c.isVisible() and c.label]
        placed = [(c.label, c.meaning, self.to_pixels(*end)) for c, end in ends if end is not None]
        self.words.place(line_ends(placed, self.words, self._space()))

    def _labels(self) -> list[str]:
        """Return the labels at the ends of the lines, including those of hidden lines."""
        return [curve.label for curve in self.curves if curve.label]

    def _label_space(self) -> float:
        """Return the width in pixels needed by the labels to the right of the plot."""
        return max((self.words.width(label) + 12 for label in self._labels()), default=0.0)

    def _style_margins(self) -> None:
        self.margin = self._label_space()
        self.frame.set_look(self.theme, self.factor, self.margin)
