"""The base of every plot: axes, lines, markers, a cursor for keyboard and mouse, a read-out, a summary, and a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import pyqtgraph as pg
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QRegion, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QGraphicsScene, QGraphicsView, QWidget

from app.plotting.axis import Scale, padding
from app.plotting.chart import CLICK, Chart
from app.plotting.curve import Curve
from app.plotting.frame import Frame
from app.plotting.items import Band, Marks
from app.plotting.labels import ReadOut, Words, line_ends
from app.plotting.numbers import is_missing, shown
from app.plotting.pyramid import Pyramid
from app.plotting.ranges import held_range
from app.plotting.table_model import Column, Rows

ZOOM = 0.8
Item = TypeVar("Item")


class Plot(Chart, pg.GraphicsView):  # type: ignore[misc]
    """A plot: graphics items on two axes, whose ranges do not jump, with labels at the ends of lines.

    Subclass it or add items to it once, then set their data and call ``refresh`` once per frame.

    Attributes:
        zoomable: whether the user can zoom and pan along the x axis.
        curves: the lines; if not all labels fit, the first ones are shown.
        frame: the axes, with the view box that contains the items.
        margin: width in pixels of the labels to the right of the plot.
        reach: a value that an x axis without fixed ends includes in addition to the curves.

    Signals:
        cursor_moved: the user has moved the cursor to this x (click, arrow keys, Home, End).
        activated: the user has pressed Return or E at the cursor, or double-clicked at this x.
        zoomed: the user has zoomed, panned, or restored the full range.
    """

    cursor_moved = Signal(float)
    activated = Signal(float)
    zoomed = Signal()

    def __init__(self, title: str, x: Scale, y: Scale, *, zoomable: bool = False) -> None:
        super().__init__(title)
        # filling a plain background costs less than copying it
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)  # there are only few items, all visible
        self.zoomable = zoomable
        self.curves: list[Curve] = []
        self._items: list[Any] = []
        self._extent: tuple[float, float] | None = None
        """The y values spanned by everything except the curves, for a y axis without fixed ends."""
        self._held: dict[str, tuple[float, float] | None] = {"x": None, "y": None}
        self._y_range: tuple[float, float, float] | None = None
        self._was_empty = True
        self.margin = self.reach = 0.0
        self._numbered = 0
        self._zoomed = self._refreshing = False
        self._instead: str | None = None
        self.enableMouse(False)
        self.frame = Frame(x, y)
        self.setCentralItem(self.frame)
        self.view_box = self.frame.view_box
        self.view_box.disableAutoRange()
        self.view_box.setMouseEnabled(x=zoomable, y=False)
        self.view_box.setBorder(None)
        self.view_box.sigRangeChangedManually.connect(self._on_zoom)
        self.marks = self.add_item(Marks(), z=5)
        self.words = Words(self.frame)
        self.cursor_band = self.add_item(Band("text", 1.5), z=30)
        self.hover_band = self.add_item(Band("muted", 1.0), z=31)
        self.read_out = ReadOut(self.frame)
        self._style_items()

    def close(self) -> bool:
        """Hide the widget without clearing its scene.

        pyqtgraph's own ``close`` clears the scene. This crashes, since Python still holds the items.
        """
        return QWidget.close(self)

    # -- building -----------------------------------------------------------------------------------------------------

    def add_curve(self, key: str, label: str, meaning: str, series: Pyramid | None = None, first: float = 1.0) -> Curve:
        """Add a line for a series, labelled at its end."""
        curve = self.add_item(Curve(key, label, meaning, Pyramid() if series is None else series, first), z=10)
        self.curves.append(curve)
        self._style_margins()
        return curve

    def add_item(self, item: Item, z: float = 1.0) -> Item:
        """Add any graphics item that has a method ``apply_style(theme, factor)``."""
        drawn: Any = item
        self._items.append(drawn)
        drawn.setZValue(z)
        drawn.apply_style(self.theme, self.factor)
        self.view_box.addItem(drawn, ignoreBounds=True)
        return item

    # -- interface for panels ------------------------------------------------------------------------------------------

    def _apply_style(self) -> None:
        self._style_items()
        self.refresh()

    def _style_items(self) -> None:
        theme, scale = self.theme, self.factor
        self.setBackground(theme.colour("ground"))
        for item in (*self._items, self.words, self.read_out):
            item.apply_style(theme, scale)
        self._style_margins()

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
        return (min(a for a, _ in spans), max(b for _, b in spans)) if spans else None

    @property
    def cursor_x(self) -> float | None:
        return self.cursor_band.place

    def set_cursor(self, x: float | None) -> None:
        """Move the cursor to ``x`` without emitting a signal."""
        self.cursor_band.place = x

    def explain_current(self) -> None:
        span = self.places()
        if span is not None:
            self.activated.emit(self.cursor_x if self.cursor_x is not None else span[1])

    @Slot(int, str)
    def explain_cell(self, row: int, key: str) -> None:
        self.activated.emit(min((curve.first for curve in self.curves if len(curve.series)), default=0.0) + row)

    @property
    def place_name(self) -> str:
        """Name of a position on the x axis in the read-out and the table, for example "update"."""
        return self.frame.x.label or "x"

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """Return the read-out at ``x``: lines of (text, meaning). Subclasses can override it."""
        values = [(curve, curve.at(x)) for curve in self.curves if curve.isVisible()]
        lines = [(f"{c.label}  {shown(v, 6)}", c.meaning) for c, v in values if not is_missing(v)]
        where = shown(self.number_at(round(x) if self.frame.x.whole else x))
        return [(f"{self.place_name} {where}", "muted"), *lines]

    def table(self) -> tuple[list[Column], Rows]:
        """Return the plot as a table whose rows are created on demand. Subclasses without curves override it."""
        columns = [Column("x", self.place_name, chars=8, decimals=0)]
        columns += [Column(c.key, c.label, chars=9, help=c.label) for c in self.curves]
        return columns, SeriesRows([(c.series, c.first) for c in self.curves])

    def reset_view(self) -> None:
        """Show the full range again after zooming."""
        self._zoomed, self._held["x"] = False, None
        self.refresh()
        self.zoomed.emit()

    def zoom_as(self, other: Plot) -> None:
        """Show the same part of the x axis as ``other``."""
        self._zoomed = other._zoomed
        if self._zoomed:
            self.view_box.setXRange(*other.view_box.viewRange()[0], padding=0)
        else:
            self._held["x"] = None
        self.refresh()

    def forget_view(self) -> None:
        """Reset axes and zoom before other data is shown."""
        self._zoomed, self._held = False, {"x": None, "y": None}

    def zoom(self, factor: float, about: float | None = None) -> None:
        """Show ``factor`` times as much of the x axis.

        ``about`` keeps its position on the screen. By default, the cursor does, or the middle if the cursor is not
        visible.
        """
        low, high = self.view_box.viewRange()[0]
        middle = next((v for v in (about, self.cursor_x) if v is not None and low <= v <= high), (low + high) / 2)
        self._zoomed = True
        self.view_box.setXRange(middle - (middle - low) * factor, middle + (high - middle) * factor, padding=0)
        self.refresh()
        self.zoomed.emit()

    def has_data(self) -> bool:
        """Return whether there is anything to draw. Otherwise the sentence ``empty`` is shown."""
        return any(len(curve.series) for curve in self.curves)

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
        self.note_change()
        instead = None if self.has_data() else self.empty
        if instead != self._instead:
            self._instead = instead
            self.viewport().update()  # repaint everything, since the items know only of their own changes
        self._refresh_bands()

    def _refresh_x(self) -> None:
        low, high = self.frame.x.low, self.frame.x.high
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
        follows = None in (self.frame.y.low, self.frame.y.high)
        ends = [v for c in self.curves if c.isVisible() for v in c.extent()] if follows else []
        finite = [v for v in (*ends, *(self._extent or ())) if math.isfinite(v)]
        low, high = self.frame.y.fitting(min(finite, default=math.nan), max(finite, default=math.nan), self._held["y"])
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

    def _refresh_bands(self) -> None:
        (left, right), (bottom, top) = self.view_box.viewRange()
        pixel = (right - left) / max(self.view_box.width(), 1)
        for band in (self.cursor_band, self.hover_band):
            band.refresh(bottom, top, pixel)

    def _hover(self, x: float | None) -> None:
        self.note_change()
        self.hover_band.place = x
        if x is None or self.places() is None:
            self.hover_band.place = None
            self.read_out.say([], QPointF(), QRectF())
        else:
            area = self.frame.mapRectFromItem(self.view_box, self.view_box.rect())
            self.read_out.say(self.read_at(x), QPointF(self.to_pixels(x, 0).x(), area.top() + 4), area)
        self._refresh_bands()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "read_out"):
            self.refresh()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.is_painted():
            return
        pg.GraphicsView.paintEvent(self, event)
        if self._instead is not None or self._ringed:
            painter = QPainter(self.viewport())
            self._paint_over(painter, self._instead)
            painter.end()

    def paint(self, painter: QPainter, area: QRect) -> None:
        self.viewport().render(painter, QPoint(), QRegion(area), QWidget.RenderFlag(0))

    # -- input --------------------------------------------------------------------------------------------------------

    def snap(self, x: float) -> float | None:
        """Return the nearest position with data, or None without data."""
        span = self.places()
        if span is None:
            return None
        return min(max(round(x) if self.frame.x.whole else x, span[0]), span[1])

    def _x_at(self, point: QPointF) -> float | None:
        """Return the position with data nearest to a point of the viewport, or None outside the data rectangle."""
        scene = self.mapToScene(point.toPoint())
        if not self.view_box.sceneBoundingRect().contains(scene):
            return None
        return self.snap(self.view_box.mapSceneToView(scene).x())

    def _move_to(self, x: float) -> None:
        place = self.snap(x)
        if place is None:
            return
        self.set_cursor(place)
        low, high = self.view_box.viewRange()[0]
        if self._zoomed and not low <= place <= high:
            self.view_box.setXRange(place - (high - low) / 2, place + (high - low) / 2, padding=0)
        self.refresh()
        self.cursor_moved.emit(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        span, key = self.places(), Qt.Key(event.key())
        if span is None:
            event.ignore()
            return
        step = 1.0 if self.frame.x.whole else (span[1] - span[0]) / 100
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            step *= 10
        here = self.cursor_x if self.cursor_x is not None else span[1]
        moves = {Qt.Key.Key_Left: here - step, Qt.Key.Key_Right: here + step}
        moves |= {Qt.Key.Key_Home: span[0], Qt.Key.Key_End: span[1]}
        zooms = {Qt.Key.Key_Plus: ZOOM, Qt.Key.Key_Equal: ZOOM, Qt.Key.Key_Minus: 1 / ZOOM}
        if key in moves:
            self._move_to(moves[key])
            self._hover(self.cursor_x)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.activated.emit(here)
        elif self.zoomable and key in zooms:
            self.zoom(zooms[key])
        elif self.zoomable and key is Qt.Key.Key_0:
            self.reset_view()
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed = event.position() if event.button() is Qt.MouseButton.LeftButton else None
        super().mousePressEvent(event)
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        event.accept()
        pressed, self._pressed = self._pressed, None
        if pressed is not None and (event.position() - pressed).manhattanLength() <= CLICK:
            x = self._x_at(event.position())
            if x is not None:
                self._move_to(x)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        x = self._x_at(event.position())
        if x is not None:
            self.activated.emit(x)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._hover(self._x_at(event.position()))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom if the plot is zoomable, unless Ctrl is pressed. Otherwise the wheel scrolls the surrounding area."""
        if self.zoomable and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(ZOOM if event.angleDelta().y() > 0 else 1 / ZOOM, self._x_at(event.position()))
            event.accept()
        else:
            event.ignore()

    @Slot()
    def _on_zoom(self) -> None:
        self._zoomed = True
        self.refresh()
        self.zoomed.emit()


class SeriesRows(Sequence[Sequence[object]]):
    """The rows of a plot's table, created on demand, so that a million updates cost nothing until they are shown.

    There is one per position: x or its displayed number, then the value of each series, or None if it has none there.
    The length is fixed when the object is created, so that a table does not change while it is displayed.
    """

    def __init__(
        self, series: Sequence[tuple[Pyramid, float]], number_at: Callable[[float], float] | None = None
    ) -> None:
        self._series = [(pyramid.values, first) for pyramid, first in series]
        self._number_at = number_at or float
        filled = [(first, first + len(values)) for values, first in self._series if len(values)]
        self._first = min((a for a, _ in filled), default=0.0)
        self._size = round(max((b for _, b in filled), default=self._first) - self._first)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, n: int) -> Sequence[object]: ...
    @overload
    def __getitem__(self, n: slice) -> Sequence[Sequence[object]]: ...
    def __getitem__(self, n: int | slice) -> Sequence[object] | Sequence[Sequence[object]]:
        if isinstance(n, slice):
            return [self[i] for i in range(*n.indices(self._size))]
        if not -self._size <= n < self._size:
            raise IndexError(n)
        x = self._first + n % self._size
        row: list[object] = [int(self._number_at(x))]
        for values, first in self._series:
            place = round(x - first)
            value = float(values[place]) if 0 <= place < len(values) else None
            row.append(None if value is None or value != value else value)
        return row
