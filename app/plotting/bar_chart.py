"""The one bar chart: a painted widget whose places are chosen, dragged and read by mouse and keyboard."""

from __future__ import annotations

import itertools

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.axis import Scale
from app.plotting.bar_data import BarPicture
from app.plotting.bar_painter import paint_picture
from app.plotting.labels import paint_read_out, read_out_box, read_out_place
from app.plotting.painted_axes import Axes, Tick, axes_in, named_ticks, paint_axes, round_ticks
from app.plotting.ranges import held_range
from app.plotting.table_model import Column, Rows
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import tr

CLICK = 4
"""Pixels that the pointer may move between press and release of a click."""
REACH = 12
"""Pixels within which a diamond can be grabbed."""
KEY_STEPS = 40
"""Presses of Up from one end of the axis to the other, where no step is given."""
STALE = 0.45
"""Opacity of a picture that is older than what the rest of the window shows."""
NOTHING = BarPicture(names=(), label="", series=(), y=Scale(low=0, high=1))
DRAGS = ("", "bar", "diamond")
DRAG_TIP = tr("Drag a bar, or choose one by its digit and move it with Up and Down.")
GESTURES = itertools.count(1_000_000)
Key = Qt.Key


class BarChart(QWidget):
    """Bars over places that have names, or over the steps of a continuous axis.

    Attributes:
        title: its accessible name, and what stands above it.
        empty: the sentence shown while there is no picture.
        picture: what is drawn.
        theme, factor: the look.
        chosen: the place that the keys move, counted from 0.
        drag: what a press of the mouse grips: "" nothing, "bar" the whole column of a place, "diamond" a marker.
        steps: by how much Up and Down move the chosen bar that can be dragged, without and with Shift; None for 1/40
            of the axis.
        walks: whether digits go to the place of that number, and Up and Down, where they drag nothing, to the next
            place; over a continuous axis to the next one that has a bar.

    Signals:
        picked: the user has gone to this place (click, arrows, Home, End, digits).
        activated: Return, E or a double click on this place.
        dragged: place, wanted height within the axis, and a number that is the same during one drag.
    """

    picked = Signal(int)
    activated = Signal(int)
    dragged = Signal(int, float, int)

    def __init__(
        self, title: str, *, drag: str = "", steps: tuple[float, float] | None = None, walks: bool = False,
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.title, self.empty = title, ""
        self.picture = NOTHING
        self.theme, self.factor = LIGHT, 1.0
        self.chosen = 0
        self.steps, self.walks = steps, walks
        self._y_range: tuple[float, float] | None = None
        self._pressed: QPointF | None = None
        self._grip: tuple[int, int] | None = None
        self._hovered: int | None = None
        self._stale = self._ringed = False
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(120, 80)
        self.setMouseTracking(True)
        self.setAccessibleName(title)
        self.set_drag(drag)

    # -- what panels use ----------------------------------------------------------------------------------------------

    def show_picture(self, picture: BarPicture) -> None:
        """Draw ``picture`` instead."""
        low, high = picture.y.low, picture.y.high
        if low is None or high is None:
            ends = picture.extent()
            held = held_range(
                ends[0] if low is None else low, max(ends[1], ends[1] if low is None else low), self._y_range,
                tight=low is not None,
            )  # fmt: skip
            low, high = held[0] if low is None else low, held[1] if high is None else high
        if picture.y != self.picture.y:
            self._y_range = None
        self._y_range = low, high
        self.picture = picture
        chosen = self.chosen if picture.chosen is None else picture.chosen
        self.chosen = min(chosen, max(picture.count - 1, 0))
        self.update()

    def set_look(self, theme: Theme, scale: float) -> None:
        """Other colours, another size."""
        if (theme, scale) != (self.theme, self.factor):
            self.theme, self.factor = theme, scale
            self.update()

    def set_stale(self, stale: bool) -> None:
        """Dim the picture: it shows something older than what the rest of the window shows."""
        if stale != self._stale:
            self._stale = stale
            self.update()

    def set_drag(self, drag: str) -> None:
        """What can be dragged from now on; see ``drag``.

        Raises:
            ValueError: that is none of "", "bar" and "diamond".
        """
        if drag not in DRAGS:
            raise ValueError(f"“{drag}” cannot be dragged in a bar chart: choose one of {', '.join(map(repr, DRAGS))}.")
        self.drag = drag
        self.setCursor(Qt.CursorShape.SizeVerCursor if drag == "bar" else Qt.CursorShape.ArrowCursor)
        self.setToolTip(plain_tip(DRAG_TIP if drag == "bar" else ""))

    def set_summary(self, sentence: str) -> None:
        """One sentence on what the chart shows, for screen readers."""
        if sentence != self.accessibleDescription():
            self.setAccessibleDescription(sentence)

    def refresh(self) -> None:
        """Paint again with the next frame."""
        self.update()

    def table(self) -> tuple[list[Column], Rows]:
        """What is drawn, as a table: one row a place."""
        return self.picture.table()

    @property
    def heights(self) -> dict[str, np.ndarray]:
        """Name of every series -> its heights (n,)."""
        return {series.name: series.heights for series in self.picture.series}

    @property
    def y_range(self) -> tuple[float, float]:
        """Ends of the vertical axis."""
        return self._y_range or (0.0, 1.0)

    def explain_current(self) -> None:
        """Ask for an explanation of the chosen place."""
        if self.picture.count:
            self.activated.emit(self.chosen)

    def choose(self, place: int) -> None:
        """Go to a place as the user does; one that does not exist is no place to go to."""
        if 0 <= place < self.picture.count:
            self.chosen = place
            self.picked.emit(place)

    # -- geometry -----------------------------------------------------------------------------------------------------

    @property
    def _labels(self) -> tuple[str, str]:
        """What the axes say."""
        picture = self.picture
        return picture.label if picture.x_label is None else picture.x_label, picture.y.text

    def axes(self) -> Axes:
        """Where the data lie in the widget."""
        size = QSizeF(self.size())
        return axes_in(size, self.theme, self.factor, self.picture.x_range, self.y_range, self._labels)

    def pixel_at(self, place: int, height: float) -> QPointF:
        """Where ``height`` over the middle of ``place`` (from 0) is in the widget."""
        return self.axes().at(place + 1.0, height)

    def place_at(self, point: QPointF) -> int | None:
        """The place whose column holds a point of the widget; None outside of all."""
        axes = self.axes()
        place = round(axes.x_of(point.x())) - 1
        return place if axes.area.contains(point) and 0 <= place < self.picture.count else None

    def _diamond_at(self, point: QPointF) -> int | None:
        axes = self.axes()
        for series in self.picture.series:
            if series.style == "diamond":
                for place, height in enumerate(series.heights.tolist()):
                    if height == height and (axes.at(place + 1.0, height) - point).manhattanLength() <= REACH:
                        return place
        return None

    # -- drawing ------------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self.theme
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.fillRect(self.rect(), theme.colour("ground"))
        if self.picture.count:
            painter.setOpacity(STALE if self._stale else 1.0)
            axes = self.axes()
            paint_axes(painter, axes, theme, self.factor, self._x_ticks(axes), self._y_ticks(axes), self._labels)
            painter.setClipRect(axes.area.adjusted(-1, -axes.area.top(), 1, 1))
            paint_picture(painter, self.picture, axes, theme, self.factor)
            painter.setClipping(False)
            painter.setOpacity(1.0)
            if self._hovered is not None and self._hovered < self.picture.count:
                self._paint_hover(painter, axes, self._hovered)
        elif self.empty:
            painter.setPen(theme.colour("muted"))
            painter.setFont(theme.font("body", self.factor))
            wrapped = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
            painter.drawText(QRectF(self.rect()).adjusted(24, 8, -24, -8), wrapped, self.empty)
        if self._ringed:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour("selection"), theme.ring_width))
            painter.drawRect(self.rect().adjusted(1, 1, -2, -2))

    def _x_ticks(self, axes: Axes) -> list[Tick]:
        picture = self.picture
        if picture.edges is None:
            metrics = QFontMetricsF(self.theme.font("small", self.factor))
            return named_ticks(picture.names, metrics, axes.area.width() / (axes.x[1] - axes.x[0]))
        low, high = float(picture.edges[0]), float(picture.edges[-1])
        found = round_ticks(low, high, axes.area.width(), 64.0 * self.factor)
        return [(0.5 + (value - low) / (high - low) * picture.count, text) for value, text in found]

    def _y_ticks(self, axes: Axes) -> list[Tick]:
        if self.picture.y_ticks is not None:
            return list(self.picture.y_ticks)
        low, high = axes.y
        return round_ticks(low, high, axes.area.height(), 34.0 * self.factor, whole=self.picture.y.whole)

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

    # -- input --------------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Key(event.key()), self.picture.count - 1
        moves = {Key.Key_Left: max(self.chosen - 1, 0), Key.Key_Right: min(self.chosen + 1, last)}
        moves |= {Key.Key_Home: 0, Key.Key_End: last}
        way = {Key.Key_Up: 1, Key.Key_Down: -1}.get(key, 0)
        if last < 0:
            event.ignore()
        elif key in moves:
            self.choose(moves[key])
            self._hover(self.chosen)
        elif key in (Key.Key_Return, Key.Key_Enter):
            self.activated.emit(self.chosen)
        elif way and self.drag == "bar":
            self._move_chosen(way, leap=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        elif way and self.walks:
            self.walk(way)
        elif self.walks and event.text() and event.text() in "1234567890":
            self.choose((int(event.text()) - 1) % 10)
        else:
            event.ignore()

    def walk(self, way: int) -> None:
        """Go to the next place to the right (1) or to the left (-1); the first time to the first one from there."""
        further = [n for n in self._reachable() if self.picture.chosen is None or (n - self.chosen) * way > 0]
        if further:
            self.choose(further[0 if way > 0 else -1])

    def _reachable(self) -> list[int]:
        """The places that can be chosen: on a continuous axis those that have a bar, else all."""
        return [n for n in range(self.picture.count) if self.picture.edges is None or self.picture.top(n)]

    def _move_chosen(self, way: int, *, leap: bool) -> None:
        low, high = self.y_range
        step = self.steps[leap] if self.steps is not None else (high - low) / KEY_STEPS
        height = next((float(s.heights[self.chosen]) for s in self.picture.series if s.is_bar), 0.0)
        self.dragged.emit(self.chosen, height + way * step, next(GESTURES))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            self._pressed = None
            return
        self._pressed = event.position()
        place = {"bar": self.place_at, "diamond": self._diamond_at}.get(self.drag, _nowhere)(event.position())
        if place is not None:
            self._grip = place, next(GESTURES)
            if self.drag == "bar":
                self.choose(place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is None:
            self._hover(self.place_at(event.position()))
            return
        (low, high), wanted = self.y_range, self.axes().y_of(event.position().y())
        self.dragged.emit(self._grip[0], min(max(wanted, low), high), self._grip[1])

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._pressed, grip, self._grip = self._pressed, None, self._grip, None
        if pressed is None or (grip is not None and self.drag == "bar"):
            return
        if (event.position() - pressed).manhattanLength() <= CLICK:
            self._click(event.position())

    def _click(self, point: QPointF) -> None:
        place, reachable = self.place_at(point), self._reachable()
        if place is not None and reachable:  # an empty place means the bar beside it
            self.choose(min(reachable, key=lambda n: abs(n - place)))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self.place_at(event.position())
        if place is not None:
            self.activated.emit(place)

    def _hover(self, place: int | None) -> None:
        if place != self._hovered:
            self._hovered = place
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ringed = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ringed = False
        self._hover(None)
        self.update()


def _nowhere(point: QPointF) -> int | None:
    return None
