"""The base of the sweep's plots: names at the ends of their lines, marks to pick, a hand to drag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent

from app.panels.sweep.places import Places
from app.plotting.axis import Scale
from app.plotting.labels import Word, line_ends
from app.plotting.plot import CLICK, Plot

ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
FINE = 0.1
"""How far Shift and an arrow move the hand, in places."""


@dataclass(frozen=True)
class End:
    """A name at the end of a line."""

    text: str
    meaning: str
    x: float
    y: float


@dataclass(frozen=True)
class Tag:
    """A short text right of a point, below or above it, left out where another one stands."""

    text: str
    x: float
    y: float
    meaning: str = "muted"
    above: bool = False


class SweepPlot(Plot):
    """A plot of a sweep.

    Signals:
        picked: the user has put the hand at this place, on this row.
        dragged: the hand is being dragged over this place.
        explain_wanted: the key E.
    """

    picked = Signal(float, int)
    dragged = Signal(float)
    explain_wanted = Signal()
    holds_places = True
    """Whether a click and the arrows move the hand; otherwise they move the cursor, as in other plots."""

    def __init__(self, title: str, x: Scale, y: Scale) -> None:
        self._ends: Sequence[End] = ()
        self._tags: Sequence[Tag] = ()
        self.grid: Places = Places((0,))
        self.rows = 1
        self.hand, self.row = 0.0, 0
        self._dragging = False
        super().__init__(title, x, y)

    # -- words -------------------------------------------------------------------------------------------------------

    def set_ends(self, ends: Sequence[End]) -> None:
        """Names at the ends of lines; the margin at the right is theirs."""
        wider = {end.text for end in ends} != {end.text for end in self._ends}
        self._ends = ends
        if wider:
            self._dress_margins()

    def set_tags(self, tags: Sequence[Tag]) -> None:
        """Texts beside points, the most important ones first."""
        self._tags = tags

    def _dress_margins(self) -> None:
        wide = [self.words.width(end.text) + 12 for end in self._ends]
        wide += [self.words.width(curve.label) + 12 for curve in self.curves if curve.label]
        self._margin = max(wide, default=0.0)
        self.frame.layout.setContentsMargins(2, round(6 * self.factor), max(self._margin, round(10 * self.factor)), 2)
        self.frame.layout.activate()  # or the names would be placed by the margin there was before

    def _place_words(self) -> None:
        ends = [(end.text, end.meaning, self.to_pixels(end.x, end.y)) for end in self._ends]
        drawn = [(curve, curve.end()) for curve in self.curves if curve.isVisible() and curve.label]
        ends += [(curve.label, curve.meaning, self.to_pixels(*end)) for curve, end in drawn if end is not None]
        placed = line_ends(ends, self.words, self._room())
        taken: list[QRectF] = []
        for tag in self._tags:
            down = self.words.line * (-0.6 if tag.above else 0.6)
            at = self.to_pixels(tag.x, tag.y) + QPointF(6 * self.factor, down)
            area = QRectF(at.x(), at.y() - self.words.line / 2, self.words.width(tag.text) + 4, self.words.line)
            if self._room().contains(area) and not any(area.intersects(other) for other in taken):
                taken.append(area)
                placed.append(Word(tag.text, at, tag.meaning))
        self.words.place(placed)

    # -- the hand ----------------------------------------------------------------------------------------------------

    def spot(self, point: QPointF) -> tuple[float, int] | None:
        """The place and the row that a click at a point of the viewport means."""
        return None

    def explain_current(self) -> None:
        """E explains the KL; a run opens by Return or a double click."""
        self.explain_wanted.emit()

    def event(self, event: QEvent) -> bool:
        """Home and End go to the ends of the grid here, not to those of the run."""
        press = event if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) else None
        if press is not None and self.holds_places and press.key() in ENDS and not press.modifiers():
            event.accept()
            return True
        return bool(super().event(event))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Qt.Key(event.key()), len(self.grid) - 1
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier) and self.grid.numeric
        here = round(self.hand / FINE) if fine else round(self.hand)
        step = FINE if fine else 1.0
        moves = {Qt.Key.Key_Left: (here - 1) * step, Qt.Key.Key_Right: (here + 1) * step}
        moves |= {Qt.Key.Key_Home: 0.0, Qt.Key.Key_End: float(last)}
        rows = {Qt.Key.Key_Up: self.row - 1, Qt.Key.Key_Down: self.row + 1}
        if self.empty:
            event.ignore()
        elif not self.holds_places:
            super().keyPressEvent(event)
        elif key in moves:
            self.picked.emit(min(max(moves[key], 0.0), float(last)), self.row)
        elif key in rows and self.rows > 1:
            self.picked.emit(self.hand, rows[key] % self.rows)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.activated.emit(self.hand)
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        self._dragging = False

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self.holds_places:
            super().mouseReleaseEvent(event)
            return
        pressed, self._pressed = self._pressed, None
        super().mouseReleaseEvent(event)
        event.accept()
        if pressed is not None and not self._dragging and (event.position() - pressed).manhattanLength() <= CLICK:
            found = None if self.empty else self.spot(event.position())
            if found is not None:
                self.picked.emit(*found)
        self._dragging = False

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if not self.holds_places:
            super().mouseDoubleClickEvent(event)
        elif not self.empty and self.spot(event.position()) is not None:
            self.activated.emit(self.hand)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        moved = self._pressed is not None and (event.position() - self._pressed).manhattanLength() > CLICK
        x = self._x_at(event.position()) if self._dragging or moved else None
        if x is not None and self.holds_places and not self.empty:
            self._dragging = True
            self.dragged.emit(x)
