"""The chart of a sweep: a line chart in which a position of the grid can be selected, dragged and opened."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent

from app.experiments.sweep.plan import GridAxis
from app.experiments.sweep.results import row_line
from app.plotting.axis import Scale
from app.plotting.chart import CLICK
from app.plotting.line_chart import LineChart

ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
FINE = 0.1
"""Distance by which Shift and an arrow key move the selection, as a share of the grid spacing."""
EDGE = 0.35
"""Space before the first and after the last position of the axis, as a share of the grid spacing."""
REACH = 24
"""Maximum distance in pixels at which a click selects a mark if the axis is not a grid."""


class SweepChart(LineChart):
    """A line chart over the positions of a grid, over training, or of one measure against another.

    Attributes:
        axis: meaning of x: "grid" for positions of the grid; "updates" for training, where clicks and arrow keys
            move the cursor as in other charts; "measure" otherwise.
        rows: number of values of the second setting.
        place, row: the position and the row selected by the user.

    Signals:
        picked: emitted with the position and the row that the user selected.
        dragged: emitted with the position over which the pointer is dragged.
    """

    picked = Signal(float, int)
    dragged = Signal(float)

    def __init__(self, title: str, axis: str) -> None:
        self.axis, self.grid, self.rows = axis, GridAxis((0,)), 1
        self.place, self.row = 0.0, 0
        self._dragging = False
        super().__init__(title)
        if axis == "grid":
            self.cursor_band.meaning = "muted"
            self.cursor_band.apply_style(self.theme, self.factor)

    @property
    def _holds(self) -> bool:
        """Whether clicks and arrow keys move the selection."""
        return self.axis != "updates"

    def x_axis(self) -> Scale:
        lowered = self.axis == "grid" and any("\n" in text for _, text in self._names())
        # the second line of values replaces the axis label
        return dataclasses.replace(self.picture.x, label=" ") if lowered else self.picture.x

    def _names(self) -> list[tuple[float, str]]:
        """Return the labels of the grid at their positions, laid out for the current width."""
        return self.grid.labels(self.words.width, self.view_box.width() / (len(self.grid) - 1 + 2 * EDGE))

    def refresh(self) -> None:
        if self.axis == "grid":
            self.set_x_names(self._names())
            self.set_scales(x=self.x_axis())
        super().refresh()

    def spot(self, point: QPointF) -> tuple[float, int] | None:
        """Return the position and row of the mark that is selected by a click at ``point`` in the viewport, or None."""
        at, column = self.frame.mapFromScene(self.mapToScene(point.toPoint())), self._x_at(point)
        near_by = []
        for row in range(self.rows):
            line = self.lines.get(row_line(row))
            for place in range(len(line.x) if line is not None and line.listed else 0):
                mark = self.to_pixels(float(line.x[place]), float(line.y[place])) - at  # type: ignore[union-attr]
                gap = abs(mark.y()) if self.axis == "grid" else mark.manhattanLength()
                if gap == gap:
                    near_by.append((gap, place, row))
        if self.axis == "grid":
            near = None if column is None else self.grid.nearest(column)
            marks = [(gap, row) for gap, place, row in near_by if place == near]
            first = next((row for row in range(self.rows) if self._listed(row)), None)
            if near is None or first is None:
                return None
            return float(near), min(marks, default=(0.0, first))[1]
        distance, place, row = min(near_by, default=(float("inf"), 0, 0))
        return (float(place), row) if distance <= REACH * self.factor else None

    def _listed(self, row: int) -> bool:
        line = self.lines.get(row_line(row))
        return line is not None and line.listed

    def explain_cell(self, row: int, key: str) -> None:
        if self._holds:  # rows are grouped by the second setting, if all of its values are in the table
            size = len(self.grid)
            across = row // size if len(self.picture.table()[1]) >= size * self.rows else self.row
            self.picked.emit(float(row % size), min(across, self.rows - 1))
        super().explain_cell(row, key)

    # -- input ---------------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Handle Home and End as keys for the ends of the grid rather than the ends of the run."""
        press = event if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) else None
        if press is not None and self._holds and press.key() in ENDS and not press.modifiers():
            event.accept()
            return True
        return bool(super().event(event))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Qt.Key(event.key()), len(self.grid) - 1
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier) and self.grid.numeric
        here = round(self.place / FINE) if fine else round(self.place)
        step = FINE if fine else 1.0
        moves = {Qt.Key.Key_Left: (here - 1) * step, Qt.Key.Key_Right: (here + 1) * step}
        moves |= {Qt.Key.Key_Home: 0.0, Qt.Key.Key_End: float(last)}
        rows = {Qt.Key.Key_Up: self.row - 1, Qt.Key.Key_Down: self.row + 1}
        if self.empty:
            event.ignore()
        elif not self._holds:
            super().keyPressEvent(event)
        elif key in moves:
            self.picked.emit(min(max(moves[key], 0.0), float(last)), self.row)
        elif key in rows and self.rows > 1:
            self.picked.emit(self.place, rows[key] % self.rows)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.activated.emit(self.place)
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        self._dragging = False

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self._holds:
            super().mouseReleaseEvent(event)
            return
        pressed, self._pressed = self._pressed, None
        super().mouseReleaseEvent(event)
        event.accept()
        if pressed is not None and not self._dragging and (event.position() - pressed).manhattanLength() <= CLICK:
            spot = None if self.empty else self.spot(event.position())
            if spot is not None:
                self.picked.emit(*spot)
        self._dragging = False

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if not self._holds:
            super().mouseDoubleClickEvent(event)
        elif not self.empty and self.spot(event.position()) is not None:
            self.activated.emit(self.place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        moved = self._pressed is not None and (event.position() - self._pressed).manhattanLength() > CLICK
        x = self._x_at(event.position()) if self._dragging or moved else None
        if x is not None and self._holds and not self.empty:
            self._dragging = True
            self.dragged.emit(x)
