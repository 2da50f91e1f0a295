"""The legend of a plot on one line. Its swatches differ in shape or fill as well as in colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.labels import plain_tip
from app.theme.painting import painter_of, write
from app.theme.styled import Styled
from grpo_core.text import listed, tr


@dataclass(frozen=True)
class Entry:
    """A legend entry. ``kind`` is "filled", "outline", "hatch", "line", "diamond" or "dot"."""

    text: str
    meaning: str
    kind: str = "filled"


class Legend(Styled, QWidget):
    """Legend entries side by side.

    If there is too little space, the last ones are omitted. The tooltip lists them all.
    """

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        super().__init__()
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self._entries: tuple[Entry, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_entries(entries)

    def set_entries(self, entries: Sequence[Entry]) -> None:
        if tuple(entries) == self._entries:
            return
        self._entries = tuple(entries)
        self.setAccessibleName(tr("Legend: {entries}").format(entries=listed(entry.text for entry in entries)))
        self.setToolTip(plain_tip(listed(entry.text for entry in entries)))
        self.updateGeometry()
        self.update()

    def _apply_style(self) -> None:
        self.setFont(self.theme.font("digits", self.factor))
        super()._apply_style()

    def sizeHint(self) -> QSize:
        self.setFont(self.theme.font("digits", self.factor))
        wide = sum(self._width(entry) for entry in self._entries)
        return QSize(round(wide), self.fontMetrics().height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def _width(self, entry: Entry) -> float:
        return self.fontMetrics().horizontalAdvance(entry.text) + 26 * self.factor

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        shown, space = [], float(self.width())
        for entry in self._entries:
            space -= self._width(entry)
            if space < -0.5:
                break
            shown.append(entry)
        x = self.width() - sum(self._width(entry) for entry in shown)
        for entry in shown:
            self._paint_mark(painter, entry, QPointF(x + 11 * self.factor, self.height() / 2))
            area = QRectF(x + 20 * self.factor, 0, self._width(entry), self.height())
            write(painter, area, entry.text, self.font(), self.theme.ink("muted"))
            x += self._width(entry)

    def _paint_mark(self, painter: QPainter, entry: Entry, at: QPointF) -> None:
        theme, half = self.theme, 4.0 * self.factor
        colour = theme.colour(entry.meaning)
        box = QRectF(at.x() - half, at.y() - half, 2 * half, 2 * half)
        painter.setPen(QPen(colour, 1.3 * self.factor))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if entry.kind == "line":
            pen = theme.pen(entry.meaning, 1.6 * self.factor)
            painter.setPen(pen)
            painter.drawLine(at - QPointF(half * 1.5, 0), at + QPointF(half * 1.5, 0))
        elif entry.kind == "diamond":
            corners = ((0, -half), (half, 0), (0, half), (-half, 0))
            painter.drawPolygon(QPolygonF([at + QPointF(dx, dy) for dx, dy in corners]))
        else:
            fills = {"filled": QBrush(colour), "dot": QBrush(colour), "hatch": theme.hatch(entry.meaning)}
            painter.setBrush(fills.get(entry.kind, QBrush(Qt.BrushStyle.NoBrush)))
            painter.drawEllipse(box) if entry.kind == "dot" else painter.drawRect(box)
