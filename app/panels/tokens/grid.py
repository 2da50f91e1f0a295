"""Completions as rows of tokens, drawn by hand: three tokens or two thousand, only what is in sight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from app.plotting.theme import Theme


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """What the grid draws: one row a completion.

    Attributes:
        index: (n,) row of the record for each row drawn.
        texts: tokens of each row.
        share: (n, T) tint between −1 and 1.
        clipped: (n, T) boolean.
        notes: to the right of each row: (text, colour name).
        dead: the group carries no signal.
    """

    index: np.ndarray
    texts: list[list[str]]
    share: np.ndarray
    clipped: np.ndarray
    notes: list[list[tuple[str, str]]]
    dead: bool


class TokenGrid(QAbstractScrollArea):
    """Walk with the arrows; click or press Return to ask for a token's explanation.

    Signals:
        chosen: (row of the record, token).
        activated: explain this token (row, token).
    """

    chosen = Signal(int, int)
    activated = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: Rows | None = None
        self._theme: Theme | None = None
        self._scale = 1.0
        self._selected: tuple[int, int] | None = None
        self._tops: list[float] = []
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Completions")
        self.viewport().setMouseTracking(True)

    def show_rows(self, rows: Rows | None, theme: Theme, scale: float, selected: tuple[int, int] | None) -> None:
        """Draw these rows with a ring around the selected (row of the record, token)."""
        self._rows, self._theme, self._scale, self._selected = rows, theme, scale, selected
        self._lay_out()
        self.viewport().update()

    # -- geometry ----------------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        assert self._theme is not None
        metrics = QFontMetricsF(self._theme.font("mono", self._scale))
        self._cell_height = metrics.height() * 1.35
        self._glyph = metrics.horizontalAdvance("0")
        self._gap = max(self._glyph * 0.25, 2.0)
        self._left = self._glyph * 4.5
        longest = max((sum(len(text) for text, _ in notes) + 3 * len(notes) for notes in self._notes()), default=0)
        self._note_width = min(longest * self._glyph * 0.92 + 16, self.viewport().width() * 0.6)

    def _notes(self) -> list[list[tuple[str, str]]]:
        return self._rows.notes if self._rows else []

    def _width(self, text: str) -> float:
        return max(len(text), 1) * self._glyph + self._glyph * 0.9

    def _lay_out(self) -> None:
        """Where each row begins; a row whose tokens do not fit wraps."""
        self._tops = []
        if self._rows is None or self._theme is None:
            self.verticalScrollBar().setRange(0, 0)
            return
        self._measure()
        top = 4.0
        for texts in self._rows.texts:
            self._tops.append(top)
            lines = self._cells(texts, 0.0)[-1][1].top() // self._line if texts else 0
            top += (lines + 1) * self._line
        self._height = top + 4
        bar = self.verticalScrollBar()
        bar.setRange(0, max(round(self._height - self.viewport().height()), 0))
        bar.setPageStep(self.viewport().height())
        bar.setSingleStep(round(self._line))

    @property
    def _line(self) -> float:
        return self._cell_height * 1.22

    def _cells(self, texts: list[str], top: float) -> list[tuple[int, QRectF]]:
        """The box of each token of a row that begins at ``top``."""
        room = max(self.viewport().width() - self._note_width - 8, self._left + 6 * self._glyph)
        x, y, boxes = self._left, top, []
        for i, text in enumerate(texts):
            width = self._width(text)
            if x + width > room and x > self._left:
                x, y = self._left, y + self._line
            boxes.append((i, QRectF(x, y, width, self._cell_height)))
            x += width + self._gap
        return boxes

    def _at(self, point: QPointF) -> tuple[int, int] | None:
        """(row drawn, token) under a point of the viewport; the nearest token of the row."""
        if self._rows is None:
            return None
        y = point.y() + self.verticalScrollBar().value()
        for n in range(len(self._tops) - 1, -1, -1):
            if y >= self._tops[n]:
                boxes = self._cells(self._rows.texts[n], self._tops[n])
                if not boxes:
                    return None
                inside = [i for i, box in boxes if box.adjusted(-self._gap, -2, self._gap, 4).contains(point.x(), y)]
                return n, inside[0] if inside else 0
        return None

    # -- drawing -----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._rows is None or self._theme is None:
            return
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shift = self.verticalScrollBar().value()
        painter.translate(0, -shift)
        bottom = shift + self.viewport().height()
        for n, top in enumerate(self._tops):
            end = self._tops[n + 1] if n + 1 < len(self._tops) else self._height
            if end >= shift and top <= bottom:
                self._paint_row(painter, n, top)

    def _paint_row(self, painter: QPainter, n: int, top: float) -> None:
        assert self._rows is not None and self._theme is not None
        theme, rows, row = self._theme, self._rows, int(self._rows.index[n])
        selected = self._selected if self._selected and self._selected[0] == row else None
        if selected:
            painter.fillRect(QRectF(0, top - 2, self.viewport().width(), self._line), theme.colour("surface"))
        painter.setFont(theme.font("small", self._scale))
        painter.setPen(theme.colour("muted"))
        label = QRectF(8, top, self._left - 16, self._cell_height)
        painter.drawText(label, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(row + 1))
        painter.setFont(theme.font("mono", self._scale))
        for i, box in self._cells(rows.texts[n], top):
            self._paint_token(painter, box, rows.texts[n][i], rows.share[n, i], bool(rows.clipped[n, i]))
            if selected and selected[1] == i:
                painter.setPen(QPen(theme.colour("selection"), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(box.adjusted(-1.5, -1.5, 1.5, 1.5), 4, 4)
        self._paint_notes(painter, rows.notes[n], top)

    def _paint_token(self, painter: QPainter, box: QRectF, text: str, share: float, clipped: bool) -> None:
        """Tint by size, sign by colour and edge: solid above for up, dashed below for down; clipped is hatched."""
        assert self._theme is not None and self._rows is not None
        theme = self._theme
        name = "dead" if self._rows.dead else ("push_up" if share >= 0 else "push_down")
        colour = QColor(theme.colour(name))
        fill = QColor(colour)
        fill.setAlphaF(0.06 + 0.74 * min(abs(share), 1.0))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(Qt.BrushStyle.NoBrush if self._rows.dead else fill)
        painter.drawRoundedRect(box, 3, 3)
        if clipped:
            painter.setBrush(QBrush(colour, Qt.BrushStyle.BDiagPattern))
            painter.drawRoundedRect(box, 3, 3)
        if self._rows.dead:
            painter.setPen(QPen(theme.colour("dead"), 1, Qt.PenStyle.DotLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        elif abs(share) > 0.02:
            up = share >= 0
            painter.setPen(QPen(colour, 2, Qt.PenStyle.SolidLine if up else Qt.PenStyle.DashLine))
            y = box.top() + 1 if up else box.bottom() - 1
            painter.drawLine(QPointF(box.left() + 3, y), QPointF(box.right() - 3, y))
        painter.setPen(theme.on(fill) if not self._rows.dead else theme.colour("muted"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_notes(self, painter: QPainter, notes: list[tuple[str, str]], top: float) -> None:
        assert self._theme is not None
        painter.setFont(self._theme.font("small", self._scale))
        widths = [max(painter.fontMetrics().horizontalAdvance(row[i][0]) for row in self._notes() if len(row) > i)
                  for i in range(len(notes))]  # fmt: skip
        x = self.viewport().width() - sum(widths) - 16 * len(widths)
        for (text, colour), width in zip(notes, widths, strict=True):
            painter.setPen(self._theme.ink(colour))
            place = QRectF(x, top, width, self._cell_height)
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
            x += width + 16

    # -- input -------------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self._at(event.position())
        if found and self._rows is not None:
            self.chosen.emit(int(self._rows.index[found[0]]), found[1])

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        found = self._at(event.position())
        if found and self._rows is not None:
            self.activated.emit(int(self._rows.index[found[0]]), found[1])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._rows is None or not len(self._rows.index):
            super().keyPressEvent(event)
            return
        places = {int(row): n for n, row in enumerate(self._rows.index)}
        row, token = self._selected or (int(self._rows.index[0]), 0)
        n = places.get(row, 0)
        moves = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}
        key = Qt.Key(event.key())
        if key in moves:
            n = min(max(n + moves[key][0], 0), len(self._rows.index) - 1)
            token = min(max(token + moves[key][1], 0), max(len(self._rows.texts[n]) - 1, 0))
            self.chosen.emit(int(self._rows.index[n]), token)
            self._reveal(n)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.activated.emit(row, token)
        else:
            super().keyPressEvent(event)

    def explain_current(self) -> None:
        """Explain the selected token."""
        if self._rows is not None and len(self._rows.index):
            self.activated.emit(*(self._selected or (int(self._rows.index[0]), 0)))

    def _reveal(self, n: int) -> None:
        bar, top = self.verticalScrollBar(), self._tops[n]
        if top < bar.value():
            bar.setValue(round(top))
        elif top + self._line > bar.value() + self.viewport().height():
            bar.setValue(round(top + self._line - self.viewport().height()))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._selected is None and self._rows is not None and len(self._rows.index):
            self.chosen.emit(int(self._rows.index[0]), 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()
