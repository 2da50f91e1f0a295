"""Words on a plot, in pixels: names at the ends of lines, numbers over bars, the read-out beside the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.plotting.ranges import push_apart
from app.theme.tokens import Theme


@dataclass(frozen=True)
class Word:
    """Text with its left end and its middle at ``at``, in the plot's own pixels."""

    text: str
    at: QPointF
    meaning: str = "text"


class Words(QGraphicsItem):
    """Some words, painted in one go above everything else."""

    def __init__(self, parent: QGraphicsItem) -> None:
        super().__init__(parent)
        self.setZValue(50)
        self._words: list[Word] = []
        self._theme: Theme | None = None
        self._font = QFont()
        self._box = QRectF()

    def dress(self, theme: Theme, scale: float) -> None:
        self._theme, self._font = theme, theme.font("small", scale)
        self.update()

    def width(self, text: str) -> float:
        """Width of ``text`` in pixels."""
        return QFontMetricsF(self._font).horizontalAdvance(text)

    @property
    def line(self) -> float:
        """Height of a line in pixels."""
        return QFontMetricsF(self._font).height()

    def place(self, words: Sequence[Word]) -> None:
        """Show these instead."""
        words = list(words)
        if words == self._words:
            return
        self._words = words
        self.prepareGeometryChange()
        self._box = QRectF()
        for word in words:
            self._box = self._box.united(self._area(word))
        self.update()

    def _area(self, word: Word) -> QRectF:
        return QRectF(word.at.x(), word.at.y() - self.line / 2, self.width(word.text), self.line)

    def boundingRect(self) -> QRectF:
        return self._box.adjusted(-2, -2, 2, 2)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if self._theme is None:
            return
        painter.setFont(self._font)
        for word in self._words:
            painter.setPen(self._theme.ink(word.meaning))
            area = self._area(word)
            painter.drawText(QPointF(area.left(), area.top() + QFontMetricsF(self._font).ascent()), word.text)


class ReadOut(QGraphicsItem):
    """A small box of lines beside the pointer: what the values are there."""

    def __init__(self, parent: QGraphicsItem) -> None:
        super().__init__(parent)
        self.setZValue(60)
        self._lines: list[tuple[str, str]] = []
        self._theme: Theme | None = None
        self._font = QFont()
        self._pad = 6.0
        self.hide()

    def dress(self, theme: Theme, scale: float) -> None:
        self._theme, self._font, self._pad = theme, theme.font("small", scale), 6.0 * scale
        self.update()

    def say(self, lines: Sequence[tuple[str, str]], anchor: QPointF, room: QRectF) -> None:
        """Show (text, meaning) lines beside ``anchor``, on the side where ``room`` has place; no lines hide it."""
        self.prepareGeometryChange()
        self._lines = list(lines)
        self.setVisible(bool(lines))
        box = self.boundingRect()
        x = anchor.x() + 10 if anchor.x() + 10 + box.width() <= room.right() else anchor.x() - 10 - box.width()
        self.setPos(max(x, room.left()), min(max(anchor.y(), room.top() + 2), max(room.bottom() - box.height(), 0.0)))
        self.update()

    def boundingRect(self) -> QRectF:
        metrics = QFontMetricsF(self._font)
        widest = max((metrics.horizontalAdvance(text) for text, _ in self._lines), default=0.0)
        return QRectF(0, 0, widest + 2 * self._pad, metrics.height() * len(self._lines) + 1.4 * self._pad)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if self._theme is None:
            return
        ground = QColor(self._theme.colour("surface"))
        ground.setAlphaF(0.95)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._theme.colour("border"))
        painter.setBrush(ground)
        painter.drawRoundedRect(self.boundingRect().adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        painter.setFont(self._font)
        metrics = QFontMetricsF(self._font)
        for n, (text, meaning) in enumerate(self._lines):
            painter.setPen(self._theme.ink(meaning))
            painter.drawText(QPointF(self._pad, 0.7 * self._pad + metrics.ascent() + n * metrics.height()), text)


def line_ends(ends: Sequence[tuple[str, str, QPointF]], words: Words, room: QRectF) -> list[Word]:
    """The names of lines right of their (label, meaning, end) without overlap, within ``room``."""
    heights = push_apart([point.y() for _, _, point in ends], words.line * 0.95, room.top(), room.bottom())
    placed = []
    for (label, meaning, point), y in zip(ends, heights, strict=True):
        if y is not None:
            x = min(point.x() + 6, room.right() - words.width(label))
            placed.append(Word(label, QPointF(x, y), meaning))
    return placed
