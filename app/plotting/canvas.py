"""The plot: our axes, our look, ranges that do not jump, names at the ends of lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QGraphicsScene, QGraphicsView, QSizePolicy, QWidget

from app.plotting.axis import Axis, Scale
from app.plotting.curve import Curve
from app.plotting.frame import Frame
from app.plotting.items import Marks, Points
from app.plotting.labels import Words, line_ends
from app.plotting.pyramid import Pyramid
from app.plotting.ranges import held_range
from app.theme.tokens import LIGHT, Theme

Item = TypeVar("Item")
PAD = 7.0
"""Pixels kept free above and below, so that lines and markers at the end of a range are whole."""


class Canvas(pg.GraphicsView):  # type: ignore[misc]
    """Items on two axes. Add items once, then give them data and call ``refresh`` once a frame.

    Attributes:
        curves: the lines, in the order of their labels' precedence.
        theme, factor: the look.
        x_scale, y_scale: what the axes show.
        axis_items: the axes themselves, "left" and "bottom".
        margin: pixels right of the plot that its labels take.
        reach: a place that the x axis holds besides the data of the curves, where it has no fixed end.
    """

    def __init__(self, x: Scale, y: Scale, *, zoomable: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)  # to fill a plain ground costs less than to copy it
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)  # a handful of items, all in sight
        self.axis_items = {"left": Axis("left", y), "bottom": Axis("bottom", x)}
        self.x_scale, self.y_scale = x, y
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
        self.frame = Frame(self.axis_items["left"], self.axis_items["bottom"])
        self.setCentralItem(self.frame)
        self.view_box = self.frame.view_box
        self.view_box.disableAutoRange()
        self.view_box.setMouseEnabled(x=zoomable, y=False)
        self.view_box.setBorder(None)
        self.marks = self.add_item(Marks(), z=5)
        self.words = Words(self.frame)

    def close(self) -> bool:
        """Hide, like any widget. pyqtgraph's own ``close`` clears a scene whose items Python holds, and crashes."""
        return QWidget.close(self)

    # -- building -----------------------------------------------------------------------------------------------------

    def add_curve(self, key: str, label: str, meaning: str, series: Pyramid | None = None, first: float = 1.0) -> Curve:
        """A line over a series. Its label is at its end."""
        curve = Curve(key, label, meaning, Pyramid() if series is None else series, first)
        curve.setZValue(10)
        self.curves.append(curve)
        curve.apply_style(self.theme, self.factor)
        self.view_box.addItem(curve, ignoreBounds=True)
        self._style_margins()
        return curve

    def add_points(self, meaning: str, symbol: str = "o", size: float = 8.0, filled: bool | None = None) -> Points:
        """Markers."""
        return self.add_item(Points(meaning, symbol, size, filled), z=20)

    def add_item(self, item: Item, z: float = 1.0) -> Item:
        """Any graphics item with a method ``apply_style(theme, factor)``."""
        drawn: Any = item
        self._items.append(drawn)
        drawn.setZValue(z)
        drawn.apply_style(self.theme, self.factor)
        self.view_box.addItem(drawn, ignoreBounds=True)
        return item

    # -- what it shows ------------------------------------------------------------------------------------------------

    def set_look(self, theme: Theme, scale: float) -> None:
        """Other colours, another size."""
        if (theme, scale) != (self.theme, self.factor):
            self.theme, self.factor = theme, scale
            self._apply_style()
            self.refresh()

    def _apply_style(self) -> None:
        theme, scale = self.theme, self.factor
        self.setBackground(theme.colour("ground"))
        self.axis_items["left"].apply_style(theme, scale, grid=True)
        self.axis_items["bottom"].apply_style(theme, scale, grid=False)
        for item in (*self._items, self.words):
            item.apply_style(theme, scale)
        for curve in self.curves:
            curve.apply_style(theme, scale)
        self._style_margins()

    def set_marks(self, x: np.ndarray) -> None:
        """Events on the x axis, (n,), sorted."""
        self.marks.set_places(x)

    def set_extent(self, low: float, high: float) -> None:
        """The y values that markers and lines besides the curves span, where the y axis has no fixed ends."""
        self._extent = (low, high)

    def set_scales(self, x: Scale | None = None, y: Scale | None = None) -> None:
        """Other axes, as when the number of actions changes."""
        for name, axis, scale in (("x", "bottom", x), ("y", "left", y)):
            if scale is not None and scale != self.axis_items[axis].what:
                self.axis_items[axis].what = scale
                self._held[name] = None
                self.axis_items[axis].apply_style(self.theme, self.factor, grid=axis == "left")
        self.x_scale, self.y_scale = self.axis_items["bottom"].what, self.axis_items["left"].what

    def set_x_names(self, names: Sequence[tuple[float, str]] | None) -> None:
        """Words instead of numbers on the x axis. None brings the numbers back."""
        self.axis_items["bottom"].setTicks(None if names is None else [list(names)])

    def number_places(self, number_of: Callable[[int], int | None] | None, known: int = 0) -> None:
        """Say other numbers than the places themselves: those by which a recorded run's trainer counts.

        The ticks stay where they are; on an axis of whole places alone.

        Args:
            number_of: place -> number, None for a place that has none; None says the places again.
            known: how many places have a number, so that the axis is drawn anew when there are more; without
                ``number_of`` it means nothing.
        """
        axis, known = self.axis_items["bottom"], 0 if number_of is None else known
        if (axis.number_of, self._numbered) != (number_of, known):
            axis.number_of, self._numbered = number_of, known
            axis.picture = None
            axis.update()

    def number_at(self, x: float) -> float:
        """The number that is said of the place ``x``."""
        number_of = self.axis_items["bottom"].number_of
        number = None if number_of is None else number_of(round(x))
        return x if number is None else number

    def set_stale(self, stale: bool) -> None:
        """Dim the picture: it shows something older than what the rest of the window shows."""
        self.frame.setOpacity(0.45 if stale else 1.0)

    def places(self) -> tuple[float, float] | None:
        """The first and last x that have data. None without any."""
        spans = [(c.first, c.first + (len(c.series) - 1) * c.spacing) for c in self.curves if len(c.series)]
        if spans:
            return min(a for a, _ in spans), max(b for _, b in spans)
        low, high = self.x_scale.low, self.x_scale.high
        if self.curves or low is None or high is None:
            return None
        return (math.ceil(low), math.floor(high)) if self.x_scale.whole else (low, high)

    # -- a frame ------------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Draw what is new. Costs next to nothing where nothing is."""
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
            self._held = {"x": None, "y": None}  # the axes of an empty chart bind no data
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
        low, high = self.y_scale.low, self.y_scale.high
        if low is None or high is None:
            ends = [v for c in self.curves if c.isVisible() for v in c.extent()]
            ends += list(self._extent or ())
            finite = [v for v in ends if math.isfinite(v)]
            bounds = (min(finite), max(finite)) if finite else (math.nan, math.nan)
            fitting = held_range(
                bounds[0] if low is None else low, max(bounds[1], low if low is not None else bounds[1]),
                self._held["y"], tight=low is not None,
            )  # fmt: skip
            low, high = (fitting[0] if low is None else low), (fitting[1] if high is None else high)
        height = max(self.view_box.height(), 1.0)
        pad = min(PAD * self.factor, height / 6)
        space = pad / (height - 2 * pad) * (high - low)
        if self._y_range != (low, high, space):
            self._held["y"], self._y_range = (low, high), (low, high, space)
            self.view_box.setYRange(low - space, high + space, padding=0)

    def _space(self) -> QRectF:
        """The area of the data in the plot item's pixels, with the margin for labels."""
        area: QRectF = self.frame.mapRectFromItem(self.view_box, self.view_box.rect())
        return area.adjusted(0, 0, self.margin, 0)

    def to_pixels(self, x: float, y: float) -> QPointF:
        """A point of the data in the plot item's pixels."""
        return self.frame.mapFromItem(self.view_box, self.view_box.mapFromView(QPointF(x, y)))  # type: ignore[no-any-return]

    def _place_words(self) -> None:
        ends = [(c, c.end()) for c in self.curves if c.isVisible() and c.label]
        placed = [(c.label, c.meaning, self.to_pixels(*end)) for c, end in ends if end is not None]
        self.words.place(line_ends(placed, self.words, self._space()))

    def _labels(self) -> list[str]:
        """The labels that have room at the ends of their lines, also where these are hidden."""
        return [curve.label for curve in self.curves if curve.label]

    def _label_space(self) -> float:
        """Pixels that the labels take at the right of the plot."""
        return max((self.words.width(label) + 12 for label in self._labels()), default=0.0)

    def _style_margins(self) -> None:
        self.margin = self._label_space()
        self.frame.layout.setContentsMargins(2, round(6 * self.factor), max(self.margin, round(10 * self.factor)), 2)
        self.frame.layout.activate()  # or the labels would be placed by the margin there was before
