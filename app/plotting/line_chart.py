"""The line chart: lines with bands, markers and labels at their ends, all given as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent

from app.plotting.axis import Scale
from app.plotting.items import Points
from app.plotting.labels import Word, leader_width, line_ends
from app.plotting.line_data import NOTHING, Line, LinePicture, PointSet
from app.plotting.line_item import LineItem
from app.plotting.plot import CLICK, Plot
from app.plotting.table_model import Column, Rows


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
        self._point_items: dict[str, Points] = {}
        super().__init__(title, self.picture.x, self.picture.y)

    def show_picture(self, picture: LinePicture) -> None:
        before, self.picture = self.picture, picture
        if picture.subject is not before.subject:
            self._held["y"] = None
        self._show_lines(picture.lines)
        self._show_points(picture.points)
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

    def _show_lines(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if line.name not in self.line_items:
                self.line_items[line.name] = self.add_item(LineItem(line))
            self.line_items[line.name].show_line(line)
        for name in self.line_items.keys() - {line.name for line in lines}:
            self.line_items[name].setVisible(False)

    def _show_points(self, points: Sequence[PointSet]) -> None:
        for some in points:
            if some.name not in self._point_items:
                made = Points(some.meaning, some.marker, some.size, some.filled)
                self._point_items[some.name] = self.add_item(made)
            self._point_items[some.name].setZValue(some.z)
            self._point_items[some.name].set_points(some.x, some.y)
        for name in self._point_items.keys() - {some.name for some in points}:
            self._point_items[name].set_points(NOTHING, NOTHING)

    # -- overrides of the plot -----------------------------------------------------------------------------------------

    def places(self) -> tuple[float, float] | None:
        return self.picture.reach()

    def has_data(self) -> bool:
        return any(len(line.x) for line in self.picture.lines) or any(len(some.x) for some in self.picture.points)

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
