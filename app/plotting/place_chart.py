"""The base of every painted chart over places, which can be selected, dragged and read by mouse and keyboard."""

from __future__ import annotations

import itertools
from abc import abstractmethod

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.axis import Axes
from app.plotting.table_model import Column, Rows
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import tr

CLICK = 4
"""Pixels that the pointer can move between press and release of a click."""
REACH = 12
"""Pixels within which a diamond can be grabbed."""
DRAGS = ("", "bar", "diamond")
DRAG_TIP = tr("Drag a bar, or choose one by its digit and move it with Up and Down.")
GESTURES = itertools.count(1_000_000)
Key = Qt.Key


class PlaceChart(QWidget):
    """A painted chart over places 0, 1, ..., which can be selected, hovered over and partly dragged.

    Attributes:
        title: its accessible name, also shown above it.
        empty: the sentence shown while there is no picture.
        theme, factor: the look.
        chosen: index of the place selected by keys.
        drag: the part that can be dragged: "" nothing, "bar" the whole column of a place, "diamond" a marker.
        walks: whether digits select the place of that number, and Up and Down, if they drag nothing, the next one.

    Signals:
        picked: the user has selected this place (click, arrows, Home, End, digits).
        activated: Return, E or a double click on this place.
        dragged: place, new height within the axis, and a number that is constant during one drag.
    """

    picked = Signal(int)
    activated = Signal(int)
    dragged = Signal(int, float, int)

    def __init__(self, title: str, *, drag: str = "", walks: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title, self.empty = title, ""
        self.theme, self.factor = LIGHT, 1.0
        self.chosen = 0
        self.walks = walks
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

    # -- interface for subclasses
    # ---------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of places."""

    @property
    @abstractmethod
    def marked(self) -> int | None:
        """The place that is marked in the picture, None for none."""

    @abstractmethod
    def place_at(self, point: QPointF) -> int | None:
        """The place whose column contains a point of the widget. None outside all columns."""

    @abstractmethod
    def diamond_at(self, point: QPointF) -> int | None:
        """The place whose marker is under a point of the widget. None if there is none."""

    @abstractmethod
    def drag_axes(self) -> Axes:
        """The axes on which heights are dragged."""

    @abstractmethod
    def key_height(self, way: int, *, leap: bool) -> float:
        """The height to which a key moves the draggable part of the selected place, up (1) or down (-1)."""

    @abstractmethod
    def table(self) -> tuple[list[Column], Rows]:
        """The same data as a table, one row per place."""

    def reachable(self) -> list[int]:
        """The places that can be selected, from left to right."""
        return list(range(self.count))

    # -- interface for panels
    # -------------------------------------------------------------------------------------------

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale."""
        if (theme, scale) != (self.theme, self.factor):
            self.theme, self.factor = theme, scale
            self.update()

    def set_stale(self, stale: bool) -> None:
        """Dim the picture if it is older than the rest of the window."""
        if stale != self._stale:
            self._stale = stale
            self.update()

    def set_drag(self, drag: str) -> None:
        """Set what can be dragged. See ``drag``.

        Raises:
            ValueError: it is not "", "bar" or "diamond".
        """
        if drag not in DRAGS:
            raise ValueError(f"“{drag}” cannot be dragged in a bar chart: choose one of {', '.join(map(repr, DRAGS))}.")
        self.drag = drag
        self.setCursor(Qt.CursorShape.SizeVerCursor if drag == "bar" else Qt.CursorShape.ArrowCursor)
        self.setToolTip(plain_tip(DRAG_TIP if drag == "bar" else ""))

    def set_summary(self, sentence: str) -> None:
        """Set the accessible summary, one sentence on what the chart shows."""
        if sentence != self.accessibleDescription():
            self.setAccessibleDescription(sentence)

    def refresh(self) -> None:
        """Repaint with the next frame."""
        self.update()

    def explain_current(self) -> None:
        """Request an explanation of the selected place."""
        if self.count:
            self.activated.emit(self.chosen)

    def choose(self, place: int) -> None:
        """Select a place as if the user had done so. One that does not exist is ignored."""
        if 0 <= place < self.count:
            self.chosen = place
            self.picked.emit(place)

    # -- drawing ------------------------------------------------------------------------------------------------------

    def paint_empty(self, painter: QPainter) -> None:
        """Paint the sentence ``empty`` in the middle of the chart."""
        if self.empty:
            painter.setPen(self.theme.colour("muted"))
            painter.setFont(self.theme.font("body", self.factor))
            wrapped = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
            painter.drawText(QRectF(self.rect()).adjusted(24, 8, -24, -8), wrapped, self.empty)

    def paint_focus(self, painter: QPainter) -> None:
        """Paint the ring around the chart while it has the keyboard focus."""
        if self._ringed:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self.theme.colour("selection"), self.theme.ring_width))
            painter.drawRect(self.rect().adjusted(1, 1, -2, -2))

    # -- input --------------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Key(event.key()), self.count - 1
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
        elif way and self.drag:
            leap = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.dragged.emit(self.chosen, self.key_height(way, leap=leap), next(GESTURES))
        elif way and self.walks:
            self.walk(way)
        elif self.walks and event.text() and event.text() in "1234567890":
            self.choose((int(event.text()) - 1) % 10)
        else:
            event.ignore()

    def walk(self, way: int) -> None:
        """Select the next place to the right (1) or to the left (-1), at first the first one from that side."""
        further = [n for n in self.reachable() if self.marked is None or (n - self.chosen) * way > 0]
        if further:
            self.choose(further[0 if way > 0 else -1])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            self._pressed = None
            return
        self._pressed = event.position()
        place = {"bar": self.place_at, "diamond": self.diamond_at}.get(self.drag, _nowhere)(event.position())
        if place is not None:
            self._grip = place, next(GESTURES)
            if self.drag == "bar":
                self.setToolTip("")  # the value is known by now, and the read-out would cover the dragged part
                self.choose(place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is None:
            self._hover(self.place_at(event.position()))
            return
        axes = self.drag_axes()
        (low, high), wanted = axes.y, axes.y_of(event.position().y())
        self.dragged.emit(self._grip[0], min(max(wanted, low), high), self._grip[1])

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._pressed, grip, self._grip = self._pressed, None, self._grip, None
        if pressed is None or (grip is not None and self.drag == "bar"):
            return
        if (event.position() - pressed).manhattanLength() <= CLICK:
            self._click(event.position())

    def _click(self, point: QPointF) -> None:
        place, reachable = self.place_at(point), self.reachable()
        if place is not None and reachable:  # a press on an empty place means the bar beside it
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
