"""The line chart: lines with bands, markers and labels at their ends, all given as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QGraphicsItem

from app.plotting.axis import Scale
from app.plotting.chart import CLICK
from app.plotting.items import Ribbon
from app.plotting.labels import Word, leader_width, line_ends
from app.plotting.line_data import NOTHING, Line, LinePicture, PointSet
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import Column, Rows
from app.theme.tokens import LIGHT, Theme

MOST = 700
"""Maximum number of points drawn. If there are more, a bucket of neighbours is reduced to its lowest and highest
value."""
WIDTH, BOLD_WIDTH = 1.6, 3.0
"""Width of a line in pixels: at 100 %, and in bold themes at any scale."""


class LineItem(pg.PlotCurveItem):  # type: ignore[misc]
    """The graphics item of one line. It is created once and then shows one :class:`Line` after another."""

    def __init__(self, line: Line) -> None:
        super().__init__(connect="finite", skipFiniteCheck=False, antialias=True)
        self.line = line
        self._theme, self._factor = LIGHT, 1.0
        self.ribbon = Ribbon(line.meaning)
        self.ribbon.setParentItem(self)
        self.ribbon.setFlag(self.GraphicsItemFlag.ItemStacksBehindParent)
        self._crosses = pg.PlotCurveItem(connect="pairs", antialias=False)
        self._crosses.setParentItem(self)
        self._markers = pg.ScatterPlotItem(pxMode=True)
        self._markers.setParentItem(self)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)  # a moving cursor needs no new stroke

    def show_line(self, line: Line) -> None:
        before, self.line = self.line, line
        x, y = np.asarray(line.x, float), np.asarray(line.y, float)
        known = np.isfinite(x) & np.isfinite(y)
        if line.marker:
            x, y = x[known], y[known]
        self.setData(*((NOTHING, NOTHING) if isinstance(line, PointSet) else _thinned(x, y)))
        self._markers.setData(x=x if line.marker else [], y=y if line.marker else [])
        self._show_limits(line, known)
        self.setZValue(line.z)
        self.setVisible(True)
        look = ("meaning", "style", "marker", "filled", "size", "strength", "band_strength")
        if any(getattr(before, name) != getattr(line, name) for name in look):
            self.apply_style(self._theme, self._factor)

    def _show_limits(self, line: Line, known: np.ndarray) -> None:
        """Show a band around the line, or crosses if there are limits of x as well."""
        if line.low is None or line.high is None:
            self.ribbon.clear_limits()
            self._crosses.setData([], [])
        elif line.left is None or line.right is None:
            self.ribbon.set_limits(line.x, line.low, line.high)
            self._crosses.setData([], [])
        else:
            self.ribbon.clear_limits()
            x = np.stack([line.left, line.right, line.x, line.x], axis=-1)[known]
            y = np.stack([line.y, line.y, line.low, line.high], axis=-1)[known]
            self._crosses.setData(x.reshape(-1), y.reshape(-1))

    def apply_style(self, theme: Theme, scale: float) -> None:
        self._theme, self._factor, line = theme, scale, self.line
        colour = theme.faint(line.meaning, line.strength)
        pen = theme.pen(line.meaning, BOLD_WIDTH if theme.bold else WIDTH * scale, line.style)
        pen.setColor(colour)
        self.setPen(pen)
        self.opts["antialias"] = not theme.bold
        self.ribbon.meaning = line.meaning
        self.ribbon.apply_style(theme, scale)
        self.ribbon.set_strength(line.strength * line.band_strength)
        cross = theme.pen(line.meaning, 2.0 if theme.bold else 1.0 * scale, Qt.PenStyle.SolidLine)
        cross.setColor(theme.faint(line.meaning, 0.6))
        self._crosses.setPen(cross)
        bold, usual = (2.4, 1.4) if isinstance(line, PointSet) else (2.0, 1.2)
        self._markers.setPen(pg.mkPen(colour, width=bold if theme.bold else usual * scale))
        self._markers.setBrush(QBrush(colour if line.filled else theme.colour("ground")))
        self._markers.setSize(line.size * scale)
        self._markers.setSymbol(line.marker or "o")


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``MOST`` points that look the same. Longer input must be evenly spaced in x."""
    if len(x) <= MOST:
        return x, y
    places, values = Pyramid(y).window(0, len(y), MOST // 2)
    return np.interp(places, np.arange(len(x)), x), values


class LineChart(Plot):
    """A plot of a :class:`LinePicture`.

    For a history that grows with every update, use a :class:`Plot` with curves instead.

    Attributes:
        line_items: graphics items of the lines, by name; those of earlier pictures are hidden.
        pickable: whether the user can select lines by clicking, or with Up and Down.
        chosen: name of the selected line.
        asks_height: whether the user can press and drag to set a height.

    Signals:
        height_dragged: the user has dragged to this height, within the range of the y axis.
        line_picked: the user has selected the line with this name.
        explain_wanted: the user has pressed E. The chart leaves the explanation to its owner, since a line over many
            runs does not belong to one step.
    """

    line_picked = Signal(str)
    explain_wanted = Signal()
    height_dragged = Signal(float)

    def __init__(self, title: str, *, pickable: bool = False) -> None:
        self.picture = LinePicture(x=Scale(low=0, high=1), y=Scale(low=0, high=1))
        self.pickable, self.chosen, self.asks_height = pickable, "", False
        self.line_items: dict[str, LineItem] = {}
        self._point_items: dict[str, LineItem] = {}
        super().__init__(title, self.picture.x, self.picture.y)

    def show_picture(self, picture: LinePicture) -> None:
        before, self.picture = self.picture, picture
        if picture.subject is not before.subject:
            self._held["y"] = None
        self._show_lines(picture.lines, self.line_items)
        self._show_lines(picture.points, self._point_items)
        self.marks.set_places(picture.marks)
        self.set_scales(x=self.x_axis(), y=picture.y)
        if picture.x_ticks is not None or before.x_ticks is not None:
            self.set_x_names(picture.x_ticks)
        self._extent = picture.extent()
        if {line.label for line in picture.lines} != {line.label for line in before.lines}:
            self._style_margins()
        self.refresh()

    def x_axis(self) -> Scale:
        """Return the horizontal axis of the picture. Subclasses with their own tick labels override it."""
        return self.picture.x

    @property
    def lines(self) -> Mapping[str, Line]:
        return self.picture.by_name

    def _show_lines(self, lines: Sequence[Line], items: dict[str, LineItem]) -> None:
        for line in lines:
            if line.name not in items:
                items[line.name] = self.add_item(LineItem(line))
            items[line.name].show_line(line)
        for name in items.keys() - {line.name for line in lines}:
            items[name].setVisible(False)

    # -- overrides of the plot -----------------------------------------------------------------------------------------

    def places(self) -> tuple[float, float] | None:
        return self.picture.reach()

    def has_data(self) -> bool:
        return any(len(line.x) for line in (*self.picture.lines, *self.picture.points))

    def explain_current(self) -> None:
        self.explain_wanted.emit()

    def explain_cell(self, row: int, key: str) -> None:
        x = self.picture.table()[1][row][0]
        if self.pickable:
            self.line_picked.emit(key.split(".")[0])
        self.activated.emit(float(x) if isinstance(x, (int, float)) else float(row))

    def read_at(self, x: float) -> list[tuple[str, str]]:
        return self.picture.read(x)

    def table(self) -> tuple[list[Column], Rows]:
        return self.picture.table()

    def _label_space(self) -> float:
        lead = leader_width(self.words) if self.picture.leaders else 0
        return max((self.words.width(line.label) + 12 + lead for line in self.picture.lines if line.label), default=0.0)

    def _place_words(self) -> None:
        named = [(line, line.end) for line in self.picture.lines if line.label]
        ended = [(line, self.to_pixels(*end)) for line, end in named if end is not None]
        ends = [(line.label, line.label_meaning or line.meaning, point) for line, point in ended]
        styles = [line.style or self.theme.pen(line.meaning).style() for line, _ in ended]
        placed = line_ends(ends, self.words, self._space(), styles if self.picture.leaders else ())
        taken: list[QRectF] = []
        for tag in self.picture.tags:
            down = self.words.line * (-0.6 if tag.above else 0.6)
            at = self.to_pixels(tag.x, tag.y) + QPointF(6 * self.factor, down)
            area = QRectF(at.x(), at.y() - self.words.line / 2, self.words.width(tag.text) + 4, self.words.line)
            if self._space().contains(area) and not any(area.intersects(other) for other in taken):
                taken.append(area)
                placed.append(Word(tag.text, at, tag.meaning))
        self.words.place(placed)

    # -- dragging a height --------------------------------------------------------------------------------------------

    def ask_height(self, asks: bool) -> None:
        """Set whether the user can drag a height (``height_dragged``)."""
        if asks != self.asks_height:
            self.asks_height = asks
            self.viewport().setCursor(Qt.CursorShape.SizeVerCursor if asks else Qt.CursorShape.ArrowCursor)

    def _drag_height(self, event: QMouseEvent) -> None:
        low, high = self.view_box.viewRange()[1]
        y = self.view_box.mapSceneToView(self.mapToScene(event.position().toPoint())).y()
        self.height_dragged.emit(min(max(y, low), high))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.asks_height and event.button() is Qt.MouseButton.LeftButton:
            self._drag_height(event)
            event.accept()
        else:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.asks_height and event.buttons() & Qt.MouseButton.LeftButton:
            self._drag_height(event)
            event.accept()
        else:
            super().mouseMoveEvent(event)

    # -- selecting a line ---------------------------------------------------------------------------------------------

    def nearest_line(self, point: QPointF) -> str | None:
        """Return the name of the listed line that passes closest above or below a point of the viewport, or None."""
        x = self._x_at(point)
        if x is None:
            return None
        y = self.frame.mapFromScene(self.mapToScene(point.toPoint())).y()
        gaps = {
            line.name: abs(self.to_pixels(x, float(line.y[place])).y() - y)
            for line in self.picture.lines
            if line.listed and (place := line.place_at(x)) is not None
        }
        return min(gaps, key=lambda name: gaps[name], default=None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed = self._pressed
        super().mouseReleaseEvent(event)
        if self.pickable and pressed is not None and (event.position() - pressed).manhattanLength() <= CLICK:
            name = self.nearest_line(event.position())
            if name is not None:
                self.line_picked.emit(name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        names = [line.name for line in self.picture.lines if line.listed]
        if step is None or not self.pickable or not names:
            super().keyPressEvent(event)
            return
        here = names.index(self.chosen) if self.chosen in names else -1
        self.line_picked.emit(names[(here + step) % len(names)] if here >= 0 else names[0])
