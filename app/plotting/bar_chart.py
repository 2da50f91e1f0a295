"""The bar chart: bars over named positions or over the intervals of a continuous axis, in one or more lanes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPainterPath
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Axes, tick_text
from app.plotting.bar_data import BarPicture, Dot, Lane
from app.plotting.bar_painter import diamond_near, paint_series
from app.plotting.chart import CLICK, Chart
from app.plotting.labels import paint_read_out, read_out_box, read_out_place
from app.plotting.lane_painter import (
    BETWEEN,
    Hints,
    LanePlaces,
    ghost_outlines,
    ground_stamp,
    level_box,
    level_width,
    paint_ghosts,
    paint_ground,
    paint_level,
    paint_mark,
    places_of,
    spot_at,
)
from app.plotting.layer import Layer
from app.plotting.table_model import Column, Rows
from app.theme.labels import plain_tip
from grpo_core.text import tr

STALE = 0.45
"""Opacity of a picture that is older than the rest of the window."""
REACH = 12
"""Distance in pixels within which a diamond can be grabbed."""
DRAGS = ("", "bar", "diamond")
DRAG_TIP = tr("Drag a bar, or choose one by its digit and move it with Up and Down.")
KEY_STEPS = {"bar": (0.025, 0.025), "diamond": (0.05, 0.2)}
"""Share of the axis by which Up and Down move the draggable part, without and with Shift."""
GESTURES = itertools.count(1_000_000)
NOTHING = BarPicture(names=(), label="", lanes=())
Key = Qt.Key


class BarChart(Chart, QWidget):
    """A painted chart over positions 0, 1, ..., whose bars or diamonds can be selected and dragged.

    Each lane has its own vertical axis. A selected position is selected in all lanes. An axis widens as soon as its
    data exceed it, and narrows only once they fill less than 40 % of it. When an axis changes, its previous end is
    shown below the lane's title for one moment of the run.

    Args:
        headed: whether the chart shows the picture's sentence above the lanes; otherwise the chart's owner shows it.

    Attributes:
        ranges: ends of the axis of every lane, by its key.
        chosen: index of the position selected with the keyboard.
        drag: what can be dragged: "" nothing, "bar" the bar of any position, "diamond" a diamond.
        steps: distances by which Up and Down move the draggable part, without and with Shift; None for a share of the
            axis.
        walks: whether a digit selects the position with that number, and Up and Down, unless they drag, the next
            position.
        on_paper: whether the chart is drawn for export, where nothing can be dragged.

    Signals:
        picked: the user has selected this position (click, arrow keys, Home, End, digits).
        activated: the user has pressed Return or E, or double-clicked, on this position.
        dragged: position, new height, and a number that stays the same during one drag.
        level_dragged: the user has dragged the level to this height, in the lane with ``asks_level``.
    """

    picked = Signal(int)
    activated = Signal(int)
    dragged = Signal(int, float, int)
    level_dragged = Signal(float)

    def __init__(
        self,
        title: str,
        *,
        drag: str = "",
        steps: tuple[float, float] | None = None,
        walks: bool = False,
        headed: bool = True,
    ) -> None:
        super().__init__(title)
        self.picture = NOTHING
        self.chosen = 0
        self.steps, self.walks, self._headed = steps, walks, headed
        self.on_paper = False
        self.ranges: dict[str, tuple[float, float]] = {}
        self._earlier: dict[str, tuple[object, float]] = {}
        """Key of a lane -> the moment at which its axis changed, and the previous end of the axis."""
        self._ground = Layer()
        self._outlines: dict[str, tuple[tuple[object, ...], QPainterPath]] = {}
        """Key of a lane -> the data from which its ghosts were drawn, and their outlines."""
        self._grip: tuple[int, int] | None = None
        self._asked: Axes | None = None
        """The axes on which a level is being dragged, or None."""
        self._hovered: int | None = None
        self._stale = False
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # nothing below needs to be painted
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.set_drag(drag)

    # -- interface for panels ------------------------------------------------------------------------------------------

    def show_picture(self, picture: BarPicture) -> None:
        if picture.names != self.picture.names:
            self.forget_scales()
        for lane in picture.lanes:
            before = self.ranges.get(lane.key)
            self.ranges[lane.key] = lane.fitting(before)
            if before is not None and self.ranges[lane.key] != before:
                self._earlier[lane.key] = picture.moment, before[1]
        self.picture = picture
        chosen = self.chosen if picture.chosen is None else picture.chosen
        self.chosen = min(chosen, max(picture.count - 1, 0))
        self.update()

    def forget_scales(self) -> None:
        """Reset the axes, because another run is shown."""
        self.ranges, self._earlier = {}, {}

    def set_stale(self, stale: bool) -> None:
        """Dim the picture if it is older than the rest of the window."""
        if stale != self._stale:
            self._stale = stale
            self.update()

    def set_drag(self, drag: str) -> None:
        """Set what can be dragged. The values are those of the attribute ``drag``.

        Raises:
            ValueError: it is not "", "bar" or "diamond".
        """
        if drag not in DRAGS:
            raise ValueError(f"“{drag}” cannot be dragged in a bar chart: choose one of {', '.join(map(repr, DRAGS))}.")
        self.drag = drag
        self.setCursor(Qt.CursorShape.SizeVerCursor if drag == "bar" else Qt.CursorShape.ArrowCursor)
        self.setToolTip(plain_tip(DRAG_TIP if drag == "bar" else ""))

    def refresh(self) -> None:
        self.update()

    def explain_current(self) -> None:
        if self.count:
            self.activated.emit(self.chosen)

    def explain_cell(self, row: int, key: str) -> None:
        self.choose(row)
        self.activated.emit(row)

    def choose(self, place: int) -> None:
        """Select a position as if the user had done so. A position that does not exist is ignored."""
        if 0 <= place < self.count:
            self.chosen = place
            self.picked.emit(place)

    def table(self) -> tuple[list[Column], Rows]:
        return self.picture.table()

    @property
    def count(self) -> int:
        return self.picture.count if self.picture.lanes else 0

    def reachable(self) -> list[int]:
        """Return the positions that can be selected, from left to right.

        On a continuous axis, these are the ones with a bar.
        """
        every = range(self.count)
        return [n for n in every if self.picture.edges is None or any(lane.top(n) for lane in self.picture.lanes)]

    # -- geometry -----------------------------------------------------------------------------------------------------

    def places(self) -> LanePlaces:
        headed = self._headed and bool(self.picture.sentence)
        return places_of(self.picture, QSizeF(self.size()), self.ranges, self.theme, self.factor, headed=headed)

    def drag_axes(self) -> Axes:
        """Return the axes along which heights are dragged: those of the first lane with diamonds, if any."""
        lanes = self.picture.lanes
        with_diamonds = [lane for lane in lanes if any(series.style == "diamond" for series in lane.series)]
        return self.places().axes[(with_diamonds or lanes)[0].key]

    def place_at(self, point: QPointF) -> int | None:
        """Return the position whose column contains a point of the widget, or None outside all columns."""
        if not self.count:
            return None
        places = self.places()
        place = round(next(iter(places.axes.values())).x_of(point.x())) - 1
        names = 0.0 if self.picture.framed else self.height() - places.bottom
        column = places.column.adjusted(0, 0, 0, names)
        return place if column.contains(point) and 0 <= place < self.count else None

    def diamond_at(self, point: QPointF) -> int | None:
        """Return the position whose diamond is under a point of the widget, or None."""
        axes, lanes = self.places().axes, self.picture.lanes
        hits = (diamond_near(lane, axes[lane.key], point, REACH) for lane in lanes)
        return next((place for place in hits if place is not None), None)

    def key_height(self, way: int, *, leap: bool) -> float:
        """Return the height to which a key press moves the draggable part of the selected position.

        Args:
            way: 1 for up, -1 for down.
            leap: whether to use the larger step, as with Shift.
        """
        low, high = self.drag_axes().y
        step = KEY_STEPS[self.drag][leap] * (high - low) if self.steps is None else self.steps[leap]
        held = [one for one in self.picture.series if (one.is_bar if self.drag == "bar" else one.style == "diamond")]
        heights = [float(one.heights[self.chosen]) for one in held if np.isfinite(one.heights[self.chosen])]
        wanted = next(iter(heights), 0.0) + way * step
        return wanted if self.drag == "bar" else min(max(wanted, low), high)

    # -- drawing ------------------------------------------------------------------------------------------------------

    def paint(self, painter: QPainter, area: QRect) -> None:
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if self.count:
            places = self.places()
            self._paint_lanes(painter, places)
            painter.setOpacity(1.0)
            if self._hovered is not None and self._hovered < self.count:
                self._paint_hover(painter, places, self._hovered)
        self._paint_over(painter, None if self.count else self.empty or "")

    def _paint_lanes(self, painter: QPainter, places: LanePlaces) -> None:
        theme, factor, picture = self.theme, self.factor, self.picture
        levels = {lane.key: self._level_words(lane, places) for lane in picture.lanes}
        hints = {lane.key: self.hint(lane, levels[lane.key][0]) for lane in picture.lanes}
        stamp = (theme, factor, self._stale, *ground_stamp(picture, places, hints))
        self._ground.paint(painter, self.rect(), stamp, lambda below: self._paint_ground(below, places, hints))
        painter.setOpacity(self._strength)
        chosen = picture.chosen if picture.chosen is not None and picture.chosen < picture.count else None
        for lane in picture.lanes:
            axes = places.axes[lane.key]
            text, box = levels[lane.key]
            if not lane.level_over:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing, not lane.symmetric)
                paint_level(painter, lane, axes, text, box, theme, factor)
            painter.save()
            if picture.framed:  # its data may exceed the ends of the axis
                area = axes.area.adjusted(-1, -axes.area.top(), 1, 1)
                painter.setClipRect(area, Qt.ClipOperation.IntersectClip)
            shown = replace(lane, notes=()) if lane.key in places.crowded else lane
            paint_series(painter, shown, chosen, axes, theme, factor)
            painter.restore()
            if lane.level_over:
                paint_level(painter, lane, axes, text, box, theme, factor)
            if lane.ghosts:
                paint_ghosts(painter, self._outline(lane, axes), axes, theme, factor)
        for mark in picture.marks:
            paint_mark(painter, mark, places, theme, factor)
        self._paint_sentence(painter)

    @property
    def _strength(self) -> float:
        """Opacity of everything except the background."""
        return STALE if self._stale else 1.0

    def _paint_ground(self, painter: QPainter, places: LanePlaces, hints: Hints) -> None:
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.fillRect(self.rect(), self.theme.colour("ground"))
        painter.setOpacity(self._strength)
        paint_ground(painter, self.rect(), self.picture, places, hints, self.theme, self.factor)

    def _level_words(self, lane: Lane, places: LanePlaces) -> tuple[str, QRectF]:
        """Return the text next to the lane's level, and its box. Both are empty without a level, or if no text fits."""
        if lane.level is None:
            return "", QRectF()
        metrics = QFontMetricsF(self.theme.font("digits", self.factor))
        ends = [mark.end for mark in self.picture.marks if isinstance(mark, Dot) and mark.end.lane == lane.key]
        taken = [spot_at(end, places, self.factor) for end in ends]
        line = level_width(self.theme, self.factor)
        return level_box(lane, places.axes[lane.key], metrics, line, self.factor, taken)

    def hint(self, lane: Lane, level_text: str = "") -> tuple[str, str]:
        """Return the text below the lane's title, and the meaning that gives its colour.

        It is the previous end of the axis if the axis has just changed. Otherwise it is the short text of the level if
        ``level_text`` is empty because no text fits in the lane, or else the lane's own hint.
        """
        moment, high = self._earlier.get(lane.key, (None, 0.0))
        if moment is not None and moment == self.picture.moment and not lane.asks_level:
            return tr("scale was {high}").format(high=tick_text(high, high)), "muted"
        if lane.level is not None and lane.level_share >= 1 and not level_text:
            return lane.level_brief, lane.level_meaning
        return "" if lane.invites and (self.on_paper or not self.drag) else lane.hint, "muted"

    def _outline(self, lane: Lane, axes: Axes) -> QPainterPath:
        """Return the outlines of a lane's ghosts, recomputed only if the ghosts, the axis or the size have changed."""
        stamp = (lane.ghosts, axes.area, axes.x, axes.y)
        known = self._outlines.get(lane.key)
        if known is None or known[0][0] is not lane.ghosts or known[0][1:] != stamp[1:]:
            known = self._outlines[lane.key] = stamp, ghost_outlines(lane.ghosts, axes)
        return known[1]

    def _paint_sentence(self, painter: QPainter) -> None:
        """Paint the sentence above the lanes, or its shorter form. If neither fits, it is elided."""
        if not (self._headed and self.picture.sentence):
            return
        painter.setPen(self.theme.ink("text"))
        painter.setFont(self.theme.font("digits", self.factor))
        metrics = QFontMetricsF(painter.font())
        text, space = self.picture.sentence, round(self.width() - 12 * self.factor)
        if self.picture.shorter and metrics.horizontalAdvance(text) > space:
            text = self.picture.shorter
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, space)
        painter.drawText(QPointF(8 * self.factor, 2 * self.factor + metrics.ascent()), text)

    def _paint_hover(self, painter: QPainter, places: LanePlaces, place: int) -> None:
        column = places.column
        x = next(iter(places.axes.values())).at_x(place + 1.0)
        width = max(self.factor, 2.0 if self.theme.bold else 1.0)
        painter.setPen(self.theme.pen("muted", width, Qt.PenStyle.SolidLine))
        painter.drawLine(QPointF(x, column.top()), QPointF(x, column.bottom()))
        lines = self.picture.read(place)
        size = read_out_box(lines, self.theme, self.factor).size()
        painter.save()
        painter.translate(read_out_place(size, QPointF(x, column.top() + 4), column))
        paint_read_out(painter, lines, self.theme, self.factor)
        painter.restore()

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
        """Select the next position to the right (1) or to the left (-1).

        If none is selected, start at the opposite end.
        """
        further = [n for n in self.reachable() if self.picture.chosen is None or (n - self.chosen) * way > 0]
        if further:
            self.choose(further[0 if way > 0 else -1])

    def _asking(self, point: QPointF) -> Axes | None:
        """Return the axes of the lane whose level can be dragged at ``point``, or None."""
        for lane in self.picture.lanes:
            if lane.asks_level:
                axes = self.places().axes[lane.key]
                pad = BETWEEN * self.factor
                if axes.area.adjusted(-pad, -pad, pad, pad).contains(point):
                    return axes
        return None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if event.button() is not Qt.MouseButton.LeftButton:
            self._asked = self._pressed = None
            return
        self._asked = self._asking(point)
        if self._asked is not None:
            self.level_dragged.emit(_height_at(self._asked, point))
            return
        self._pressed = point
        place = self.place_at(point) if self.drag == "bar" else self.diamond_at(point) if self.drag else None
        if place is not None:
            self._grip = place, next(GESTURES)
            if self.drag == "bar":
                self.setToolTip("")  # the value is known by now, and the read-out would cover the dragged part
                self.choose(place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if self._asked is not None:
            self.level_dragged.emit(_height_at(self._asked, point))
        elif self._grip is not None:
            self.dragged.emit(self._grip[0], _height_at(self.drag_axes(), point), self._grip[1])
        else:
            upright = self.drag == "bar" or self._asking(point) is not None
            self.setCursor(Qt.CursorShape.SizeVerCursor if upright else Qt.CursorShape.ArrowCursor)
            self._hover(self.place_at(point))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        asked, self._asked = self._asked, None
        pressed, self._pressed, grip, self._grip = self._pressed, None, self._grip, None
        if asked is not None or pressed is None or (grip is not None and self.drag == "bar"):
            return
        if (event.position() - pressed).manhattanLength() <= CLICK:
            place, reachable = self.place_at(event.position()), self.reachable()
            if place is not None and reachable:  # a click on an empty position selects the nearest bar
                self.choose(min(reachable, key=lambda n: abs(n - place)))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self.place_at(event.position())
        if place is not None:
            self.activated.emit(place)

    def _hover(self, place: int | None) -> None:
        if place != self._hovered:
            self._hovered = place
            self.update()


def _height_at(axes: Axes, point: QPointF) -> float:
    """Return the height at a point, limited to the range of the axis."""
    low, high = axes.y
    return min(max(axes.y_of(point.y()), low), high)
