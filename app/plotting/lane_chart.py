"""A chart of several lanes over a common axis of places. Each lane has its own vertical axis, and selections span all
lanes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Axes, tick_text
from app.plotting.bar_painter import diamond_near, paint_picture
from app.plotting.headline import fitting
from app.plotting.labels import paint_read_out, read_out_box, read_out_place
from app.plotting.lane_data import Dot, Lane, LanePicture
from app.plotting.lane_ground import Hints, ground_stamp, paint_ground
from app.plotting.lane_painter import (
    BETWEEN,
    LanePlaces,
    ghost_outlines,
    level_box,
    level_width,
    paint_ghosts,
    paint_level,
    paint_mark,
    places_of,
    spot_at,
)
from app.plotting.layer import Layer
from app.plotting.place_chart import REACH, PlaceChart
from app.plotting.ranges import lane_range
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

STALE = 0.45
"""Opacity of a picture that is older than the rest of the window."""
KEY_STEPS = (0.05, 0.2)
"""Share of the dragged lane's axis by which Up or Down moves a marker, without and with Shift."""
NOTHING = LanePicture(names=(), label="", lanes=())


class LaneChart(PlaceChart):
    """The lane chart widget.

    A lane's axis widens as soon as its data exceed it, and shows its former end until the next moment; it narrows only
    once they fill less than 40 % of it.

    Args:
        headed: whether the picture's sentence is above the lanes; otherwise the chart's owner shows it.

    Attributes:
        picture: the picture shown.
        on_paper: whether it is drawn for an exported picture, where nothing can be dragged.

    Signals:
        level_dragged: the user has dragged the level of the lane that asks for one to this height, within its axis.
    """

    level_dragged = Signal(float)

    def __init__(self, title: str, *, drag: str = "", headed: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(title, drag=drag, parent=parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # anything below need not be painted
        self._headed = headed
        self.picture = NOTHING
        self.on_paper = False
        self._ranges: dict[str, tuple[float, float]] = {}
        self._earlier: dict[str, tuple[object, float]] = {}
        """Lane -> the moment at which its axis changed, and its former end."""
        self._ground = Layer()
        self._asked: Axes | None = None
        """The axes on which a level is being dragged."""
        self._outlines: dict[str, tuple[tuple[object, ...], QPainterPath]] = {}
        """Lane -> the data for which its ghosts were drawn, and their outlines."""

    # -- interface for panels
    # -------------------------------------------------------------------------------------------

    def show_picture(self, picture: LanePicture) -> None:
        """Replace the picture by ``picture``."""
        if picture.names != self.picture.names:
            self.forget_scales()
        for lane in picture.lanes:
            before = self._ranges.get(lane.key)
            low, high = lane.picture.extent()
            fitting = lane_range(low, high, before, symmetric=lane.symmetric, cap=lane.cap)
            if before is not None and fitting != before:
                self._earlier[lane.key] = picture.moment, before[1]
            self._ranges[lane.key] = fitting
        self.picture = picture
        chosen = self.chosen if picture.chosen is None else picture.chosen
        self.chosen = min(chosen, max(picture.count - 1, 0))
        self.update()

    def forget_scales(self) -> None:
        """Reset the axes for a newly shown run."""
        self._ranges, self._earlier = {}, {}

    def table(self) -> tuple[list[Column], Rows]:
        return self.picture.table() if self.picture.lanes else ([], [])

    @property
    def heights(self) -> dict[str, np.ndarray]:
        """Name of every series -> its heights (n,)."""
        return self.picture.heights()

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """Key of every lane drawn -> the ends of its axis."""
        return self._ranges

    @property
    def count(self) -> int:
        return self.picture.count

    @property
    def marked(self) -> int | None:
        return self.picture.chosen

    # -- geometry -----------------------------------------------------------------------------------------------------

    def places(self) -> LanePlaces:
        """Places of the lanes in the widget."""
        line = QFontMetricsF(self.theme.font("digits", self.factor)).height()
        unit = self.theme.type_unit(self.factor)
        headed = self._headed and bool(self.picture.sentence)
        return places_of(self.picture, QSizeF(self.size()), self._ranges, line, self.factor, unit, headed=headed)

    def drag_axes(self) -> Axes:
        """The axes of the first lane that has diamonds, else of the first lane."""
        lanes = self.picture.lanes
        with_diamonds = [lane for lane in lanes if any(series.style == "diamond" for series in lane.picture.series)]
        return self.places().axes[(with_diamonds or lanes)[0].key]

    def pixel_at(self, place: int, height: float, lane: str = "") -> QPointF:
        """The point at ``height`` of a lane, by default the draggable one, over the middle of ``place``."""
        axes = self.places().axes[lane] if lane else self.drag_axes()
        return axes.at(place + 1.0, height)

    def place_at(self, point: QPointF) -> int | None:
        if not self.picture.lanes:
            return None
        places = self.places()
        axes = next(iter(places.axes.values()))
        place = round(axes.x_of(point.x())) - 1
        column = places.column.adjusted(0, 0, 0, self.height() - places.bottom)
        return place if column.contains(point) and 0 <= place < self.count else None

    def diamond_at(self, point: QPointF) -> int | None:
        places = self.places()
        places_hit = (diamond_near(lane.picture, places.axes[lane.key], point, REACH) for lane in self.picture.lanes)
        return next((place for place in places_hit if place is not None), None)

    def key_height(self, way: int, *, leap: bool) -> float:
        low, high = self.drag_axes().y
        diamonds = [series.heights for series in self.picture.series if series.style == "diamond"]
        now = next((float(heights[self.chosen]) for heights in diamonds if np.isfinite(heights[self.chosen])), 0.0)
        return min(max(now + way * KEY_STEPS[leap] * (high - low), low), high)

    # -- drawing ------------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if self.picture.count and self.picture.lanes:
            places = self.places()
            self._paint_lanes(painter, places)
            painter.setOpacity(1.0)
            if self._hovered is not None and self._hovered < self.count:
                self._paint_hover(painter, places, self._hovered)
        else:
            painter.fillRect(self.rect(), self.theme.colour("ground"))
            self.paint_empty(painter)
        self.paint_focus(painter)

    def _paint_lanes(self, painter: QPainter, places: LanePlaces) -> None:
        theme, factor = self.theme, self.factor
        levels = {lane.key: self._level_words(lane, places) for lane in self.picture.lanes}
        hints = {lane.key: self.hint(lane, levels[lane.key][0]) for lane in self.picture.lanes}
        stamp = (theme, factor, self._stale, *ground_stamp(self.picture, places, hints))
        self._ground.paint(painter, self.rect(), stamp, lambda below: self._paint_ground(below, places, hints))
        painter.setOpacity(self._strength)
        for lane in self.picture.lanes:
            axes = places.axes[lane.key]
            text, box = levels[lane.key]
            if not lane.level_over:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing, not lane.symmetric)
                paint_level(painter, lane, axes, text, box, theme, factor)
            paint_picture(painter, lane.picture, axes, theme, factor)
            if lane.level_over:
                paint_level(painter, lane, axes, text, box, theme, factor)
            if lane.ghosts:
                paint_ghosts(painter, self._outline(lane, axes), axes, theme, factor)
        for mark in self.picture.marks:
            paint_mark(painter, mark, places, theme, factor)
        self._paint_sentence(painter)

    @property
    def _strength(self) -> float:
        """Opacity of everything but the background."""
        return STALE if self._stale else 1.0

    def _paint_ground(self, painter: QPainter, places: LanePlaces, hints: Hints) -> None:
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.fillRect(self.rect(), self.theme.colour("ground"))
        painter.setOpacity(self._strength)
        paint_ground(painter, self.rect(), self.picture, places, hints, self.theme, self.factor)

    def _level_words(self, lane: Lane, places: LanePlaces) -> tuple[str, QRectF]:
        """The text on the lane's level, and its place. Empty if it does not fit or there is no level."""
        if lane.level is None:
            return "", QRectF()
        metrics = QFontMetricsF(self.theme.font("digits", self.factor))
        ends = [mark.end for mark in self.picture.marks if isinstance(mark, Dot) and mark.end.lane == lane.key]
        taken = [spot_at(end, places, self.factor) for end in ends]
        line = level_width(self.theme, self.factor)
        return level_box(lane, places.axes[lane.key], metrics, line, self.factor, taken)

    def hint(self, lane: Lane, level_text: str = "") -> tuple[str, str]:
        """The text below the lane's title, and its colour: the former end of its axis, just after that has changed; its
        level, if ``level_text`` did not fit beside it; or else the lane's own hint."""
        moment, high = self._earlier.get(lane.key, (None, 0.0))
        if moment is not None and moment == self.picture.moment and not lane.asks_level:
            return tr("scale was {high}").format(high=tick_text(high, high)), "muted"
        if lane.level is not None and lane.level_share >= 1 and not level_text:
            return lane.level_brief, lane.level_meaning
        return "" if self.on_paper and lane.invites else lane.hint, "muted"

    def _outline(self, lane: Lane, axes: Axes) -> QPainterPath:
        """The outlines of a lane's ghosts, made again only if they, the axis or the size have changed."""
        stamp = (lane.ghosts, axes.area, axes.x, axes.y)
        known = self._outlines.get(lane.key)
        if known is None or known[0][0] is not lane.ghosts or known[0][1:] != stamp[1:]:
            known = self._outlines[lane.key] = stamp, ghost_outlines(lane.ghosts, axes)
        return known[1]

    def _paint_sentence(self, painter: QPainter) -> None:
        """Paint the sentence above the lanes. If it does not fit, its whole text is in the description."""
        if not (self._headed and self.picture.sentence):
            return
        painter.setPen(self.theme.ink("text"))
        painter.setFont(self.theme.font("digits", self.factor))
        metrics = QFontMetricsF(painter.font())
        space = round(self.width() - 12 * self.factor)
        text = fitting(self.picture.sentence, self.picture.shorter, metrics, space)
        painter.drawText(QPointF(8 * self.factor, 2 * self.factor + metrics.ascent()), text)

    def _paint_hover(self, painter: QPainter, places: LanePlaces, place: int) -> None:
        column = places.column
        x = next(iter(places.axes.values())).at_x(place + 1.0)
        width = max(self.factor, 2.0 if self.theme.bold else 1.0)
        painter.setPen(self.theme.pen("muted", width, Qt.PenStyle.SolidLine))
        painter.drawLine(QPointF(x, column.top()), QPointF(x, column.bottom()))
        lines = self.picture.flat.read(place)
        size = read_out_box(lines, self.theme, self.factor).size()
        painter.translate(read_out_place(size, QPointF(x, column.top() + 4), column))
        paint_read_out(painter, lines, self.theme, self.factor)
        painter.resetTransform()

    # -- dragging a level ---------------------------------------------------------------------------------------------

    def _asking(self, point: QPointF) -> Axes | None:
        """The axes of the lane that asks for a level, if ``point`` is in it."""
        for lane in self.picture.lanes:
            if lane.asks_level:
                axes = self.places().axes[lane.key]
                pad = BETWEEN * self.factor
                if axes.area.adjusted(-pad, -pad, pad, pad).contains(point):
                    return axes
        return None

    def _drag_level(self, axes: Axes, point: QPointF) -> None:
        low, high = axes.y
        self.level_dragged.emit(min(max(axes.y_of(point.y()), low), high))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._asked = self._asking(event.position()) if event.button() is Qt.MouseButton.LeftButton else None
        if self._asked is None:
            super().mousePressEvent(event)
        else:
            self._drag_level(self._asked, event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._asked is not None:
            self._drag_level(self._asked, event.position())
            return
        asks = self._asking(event.position()) is not None
        self.setCursor(Qt.CursorShape.SizeVerCursor if asks else Qt.CursorShape.ArrowCursor)
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        asked, self._asked = self._asked, None
        if asked is None:
            super().mouseReleaseEvent(event)
