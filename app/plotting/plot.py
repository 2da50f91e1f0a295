"""The base of every plot: a canvas with a cursor for keyboard and mouse, a read-out, a summary, and a table."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QRegion,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.canvas import Canvas
from app.plotting.items import Band
from app.plotting.labels import ReadOut
from app.plotting.numbers import is_missing, shown
from app.plotting.table_model import Column, Rows
from app.plotting.twin_rows import SeriesRows
from app.theme.painted_ahead import PaintedAhead

ZOOM = 0.8
CLICK = 4
"""Maximum distance in pixels between press and release of a click."""


class Plot(PaintedAhead, Canvas):
    """A plot. Subclass it or add items to it, and call ``refresh`` once per frame.

    Attributes:
        title: its accessible name, also shown above it.
        empty: the sentence shown while there is no data.
        zoomable: whether the user can zoom and pan along the x axis.

    Signals:
        cursor_moved: the user has moved the cursor to this x (click, arrow keys, Home, End).
        hovered: the pointer is at this x; NaN once it has left the data.
        activated: the user has pressed Return or E at the cursor, or double-clicked at this x.
        zoomed: the user has zoomed, panned, or restored the full range.
    """

    cursor_moved = Signal(float)
    hovered = Signal(float)
    activated = Signal(float)
    zoomed = Signal()

    def __init__(
        self, title: str, x: Scale, y: Scale, *, zoomable: bool = False, parent: QWidget | None = None
    ) -> None:
        Canvas.__init__(self, x, y, zoomable=zoomable, parent=parent)
        self.title, self.empty, self.zoomable = title, "", zoomable
        self._pressed: QPointF | None = None
        self._ringed = False
        self._instead = ""
        self.cursor_band = self.add_item(Band("text", Qt.PenStyle.SolidLine, 1.5), z=30)
        self.hover_band = self.add_item(Band("muted", Qt.PenStyle.SolidLine, 1.0), z=31)
        self.read_out = ReadOut(self.frame)
        self.view_box.sigRangeChangedManually.connect(self._on_zoom)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(120, 80)
        self.setAccessibleName(title)
        self._apply_style()

    # -- interface for panels ------------------------------------------------------------------------------------------

    def set_summary(self, sentence: str) -> None:
        """Set the accessible summary, one sentence that says what the plot shows."""
        if sentence != self.accessibleDescription():
            self.setAccessibleDescription(sentence)

    @property
    def cursor_x(self) -> float | None:
        """Position of the cursor, or None."""
        return self.cursor_band.place

    def set_cursor(self, x: float | None) -> None:
        """Move the cursor to ``x`` without emitting a signal."""
        self.cursor_band.place = x

    def explain_current(self) -> None:
        """Request an explanation of the position of the cursor."""
        span = self.places()
        if span is not None:
            self.activated.emit(self.cursor_x if self.cursor_x is not None else span[1])

    @Slot(int, str)
    def explain_cell(self, row: int, key: str) -> None:
        """Request an explanation of a number in the table."""
        self.activated.emit(min((curve.first for curve in self.curves if len(curve.series)), default=0.0) + row)

    @property
    def place_name(self) -> str:
        """Name of a position on the x axis in the read-out and the table, for example "update"."""
        return self.x_scale.label or "x"

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """Return the read-out at ``x``: lines of (text, meaning). Subclasses can override it."""
        values = [(curve, curve.at(x)) for curve in self.curves if curve.isVisible()]
        lines = [(f"{c.label}  {shown(v, 6)}", c.meaning) for c, v in values if not is_missing(v)]
        where = shown(self.number_at(round(x) if self.x_scale.whole else x))
        return [(f"{self.place_name} {where}", "muted"), *lines]

    def table(self) -> tuple[list[Column], Rows]:
        """Return the plot as a table whose rows are created on demand. Subclasses without curves override it."""
        columns = [Column("x", self.place_name, chars=8, decimals=0 if self.x_scale.whole else 3)]
        columns += [Column(c.key, c.label, chars=9, help=c.label) for c in self.curves]
        return columns, SeriesRows([(c.series, c.first) for c in self.curves], whole=self.x_scale.whole)

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

    def _apply_style(self) -> None:
        super()._apply_style()
        self.read_out.apply_style(self.theme, self.factor)

    def refresh(self) -> None:
        super().refresh()
        self.note_change()
        instead = "" if self.has_data() else self.empty
        if instead != self._instead:
            self._instead = instead
            self.viewport().update()  # repaint everything, since the items know only of their own changes
        self._refresh_bands()

    def _refresh_bands(self) -> None:
        (left, right), (bottom, top) = self.view_box.viewRange()
        pixel = (right - left) / max(self.view_box.width(), 1)
        for band in (self.cursor_band, self.hover_band):
            band.refresh(bottom, top, pixel)

    def _read_out_at(self, x: float | None) -> None:
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
        Canvas.paintEvent(self, event)
        if self._instead or self._ringed:
            painter = QPainter(self.viewport())
            self._paint_over(painter)
            painter.end()

    def paint(self, painter: QPainter, area: QRect) -> None:
        self.viewport().render(painter, QPoint(), QRegion(area), QWidget.RenderFlag(0))

    def _paint_over(self, painter: QPainter) -> None:
        """Paint what is not part of the scene: a sentence in its place, and the focus."""
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if self._instead:
            painter.setPen(self.theme.colour("muted"))
            painter.setFont(self.theme.font("body", self.factor))
            wrapped = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.fillRect(self.viewport().rect(), self.theme.colour("ground"))
            painter.drawText(QRectF(self.viewport().rect()).adjusted(24, 8, -24, -8), int(wrapped), self._instead)
        if self._ringed:
            painter.setPen(QPen(self.theme.colour("selection"), self.theme.ring_width))
            painter.drawRect(self.viewport().rect().adjusted(1, 1, -2, -2))

    # -- input --------------------------------------------------------------------------------------------------------

    def snap(self, x: float) -> float | None:
        """Return the nearest position with data, or None without data."""
        span = self.places()
        if span is None:
            return None
        return min(max(round(x) if self.x_scale.whole else x, span[0]), span[1])

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
        step = 1.0 if self.x_scale.whole else (span[1] - span[0]) / 100
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            step *= 10
        here = self.cursor_x if self.cursor_x is not None else span[1]
        moves = {Qt.Key.Key_Left: here - step, Qt.Key.Key_Right: here + step}
        moves |= {Qt.Key.Key_Home: span[0], Qt.Key.Key_End: span[1]}
        zooms = {Qt.Key.Key_Plus: ZOOM, Qt.Key.Key_Equal: ZOOM, Qt.Key.Key_Minus: 1 / ZOOM}
        if key in moves:
            self._move_to(moves[key])
            self._read_out_at(self.cursor_x)
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
        x = self._x_at(event.position())
        self._read_out_at(x)
        self.hovered.emit(math.nan if x is None else x)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._read_out_at(None)
        self.hovered.emit(math.nan)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom if the plot is zoomable, unless Ctrl is pressed. Otherwise the wheel scrolls the surrounding area."""
        if self.zoomable and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(ZOOM if event.angleDelta().y() > 0 else 1 / ZOOM, self._x_at(event.position()))
            event.accept()
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._ringed = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._ringed = False
        self._read_out_at(None)
        self.viewport().update()

    @Slot()
    def _on_zoom(self) -> None:
        self._zoomed = True
        self.refresh()
        self.zoomed.emit()
