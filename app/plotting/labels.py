"""Text on a plot, laid out in pixels: labels at the ends of lines, and the read-out next to the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.plotting.ranges import push_apart
from app.theme.painting import frame
from app.theme.tokens import LIGHT, Theme

LEAD, SAMPLE, GAP = 1.4, 1.9, 0.4
"""Lengths in line heights: of a leader, of the line sample after it, and of the gap before the text."""


AWAY = 8
"""Pixels between the end of a line and its label, so that a cursor line at the end does not touch the label."""
BACKING = 0.85
"""Opacity of the background behind text."""


@dataclass(frozen=True)
class Word:
    """A piece of text on a plot.

    Attributes:
        at: the middle of its left end, in the plot's pixels.
        end: the end of the line that it labels, from which a leader extends to a sample of the line before the text;
            None for a label without a leader.
        style: line style of that sample.
    """

    text: str
    at: QPointF
    meaning: str = "text"
    end: QPointF | None = None
    style: Qt.PenStyle = Qt.PenStyle.SolidLine


class Words(QGraphicsItem):
    """All text on a plot, painted together in front of everything else.

    Attributes:
        backed: whether each text has a background, so that no line behind it makes it illegible.
    """

    def __init__(self, parent: QGraphicsItem) -> None:
        super().__init__(parent)
        self.setZValue(50)
        self.words: list[Word] = []
        self.backed = False
        self._theme: Theme = LIGHT
        self._font = QFont()
        self._metrics = QFontMetricsF(self._font)
        self._box = QRectF()

    def apply_style(self, theme: Theme, scale: float) -> None:
        self._theme, self._font = theme, theme.font("digits", scale)
        self._metrics = QFontMetricsF(self._font)
        self.update()

    def width(self, text: str) -> float:
        return self._metrics.horizontalAdvance(text)

    @property
    def line(self) -> float:
        return self._metrics.height()

    def place(self, words: Sequence[Word]) -> None:
        words = list(words)
        if words == self.words:
            return
        self.words = words
        self.prepareGeometryChange()
        self._box = QRectF()
        for word in words:
            self._box = self._box.united(self._area(word))
            if word.end is not None:
                self._box = self._box.united(QRectF(word.end, word.at).normalized())
        self.update()

    def _area(self, word: Word) -> QRectF:
        return QRectF(word.at.x(), word.at.y() - self.line / 2, self.width(word.text), self.line)

    def boundingRect(self) -> QRectF:
        return self._box.adjusted(-2, -2, 2, 2)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setFont(self._font)
        ground = QColor(self._theme.colour("ground"))
        ground.setAlphaF(BACKING)
        for word in self.words:
            if word.end is not None:
                self._paint_leader(painter, word, word.end)
            area = self._area(word)
            if self.backed:
                painter.fillRect(area.adjusted(-2, 1, 2, -1), ground)
            painter.setPen(self._theme.ink(word.meaning))
            painter.drawText(QPointF(area.left(), area.top() + self._metrics.ascent()), word.text)

    def _paint_leader(self, painter: QPainter, word: Word, end: QPointF) -> None:
        """Paint a thin line from the end of the curve, and a sample of its line style before the text."""
        gap, sample = self.line * GAP, self.line * SAMPLE
        right = QPointF(word.at.x() - gap, word.at.y())
        left = QPointF(right.x() - sample, word.at.y())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.faint(word.meaning, 0.6), 1))
        painter.drawLine(end, left)
        painter.setPen(self._theme.pen(word.meaning, 2.0, word.style))
        painter.drawLine(left, right)


class ReadOut(QGraphicsItem):
    """A small box next to the pointer that shows the values there."""

    def __init__(self, parent: QGraphicsItem) -> None:
        super().__init__(parent)
        self.setZValue(60)
        self._lines: list[tuple[str, str]] = []
        self._theme: Theme = LIGHT
        self._factor = 1.0
        self.hide()

    def apply_style(self, theme: Theme, scale: float) -> None:
        self._theme, self._factor = theme, scale
        self.update()

    def say(self, lines: Sequence[tuple[str, str]], anchor: QPointF, space: QRectF) -> None:
        """Show (text, meaning) lines next to ``anchor``, on the side with enough ``space``.

        Without lines, hide the box.
        """
        self.prepareGeometryChange()
        self._lines = list(lines)
        self.setVisible(bool(lines))
        self.setPos(read_out_place(self.boundingRect().size(), anchor, space))
        self.update()

    def boundingRect(self) -> QRectF:
        return read_out_box(self._lines, self._theme, self._factor)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        paint_read_out(painter, self._lines, self._theme, self._factor)


READ_OUT_PAD = 6.0
"""Pixels between the frame of a read-out and its text, at 100 %."""


def read_out_box(lines: Sequence[tuple[str, str]], theme: Theme, factor: float) -> QRectF:
    """Return the rectangle of a box for (text, meaning) lines, with its upper left corner at the origin."""
    metrics, pad = QFontMetricsF(theme.font("digits", factor)), READ_OUT_PAD * factor
    widest = max((metrics.horizontalAdvance(text) for text, _ in lines), default=0.0)
    return QRectF(0, 0, widest + 2 * pad, metrics.height() * len(lines) + 1.4 * pad)


def read_out_place(size: QSizeF, anchor: QPointF, space: QRectF) -> QPointF:
    """Return the upper left corner of a box next to ``anchor``.

    The box is on the right of ``anchor`` if it fits into ``space``, otherwise on the left.
    """
    x = anchor.x() + 10 if anchor.x() + 10 + size.width() <= space.right() else anchor.x() - 10 - size.width()
    y = min(max(anchor.y(), space.top() + 2), max(space.bottom() - size.height(), 0.0))
    return QPointF(max(x, space.left()), y)


def paint_read_out(painter: QPainter, lines: Sequence[tuple[str, str]], theme: Theme, factor: float) -> None:
    """Paint a translucent box with (text, meaning) lines at the origin of ``painter``."""
    ground = QColor(theme.colour("surface"))
    ground.setAlphaF(0.95)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    box = read_out_box(lines, theme, factor).adjusted(0.5, 0.5, -0.5, -0.5)
    frame(painter, box, theme.colour("border"), ground, radius=4)
    painter.setFont(theme.font("digits", factor))
    metrics, pad = QFontMetricsF(painter.font()), READ_OUT_PAD * factor
    for n, (text, meaning) in enumerate(lines):
        painter.setPen(theme.ink(meaning))
        painter.drawText(QPointF(pad, 0.7 * pad + metrics.ascent() + n * metrics.height()), text)


def line_ends(
    ends: Sequence[tuple[str, str, QPointF]], words: Words, space: QRectF, styles: Sequence[Qt.PenStyle] = ()
) -> list[Word]:
    """Place labels to the right of their lines, without overlap and within ``space``.

    Labels that do not fit are omitted.

    Args:
        ends: (label, meaning, end of the line) of each line.
        styles: line style of each line. If given, a leader extends from the end of each line to a sample of the line
            before the label, so that a label can be attributed to its line even if it was moved or colours look alike.
    """
    line = words.line * (1.15 if styles else 0.95)
    heights = push_apart([point.y() for _, _, point in ends], line, space.top(), space.bottom())
    placed = []
    for n, ((label, meaning, point), y) in enumerate(zip(ends, heights, strict=True)):
        if y is not None:
            away = 2 + leader_width(words) if styles else AWAY
            x = min(point.x() + away, space.right() - words.width(label))
            led = (point, styles[n]) if styles else ()
            placed.append(Word(label, QPointF(x, y), meaning, *led))
    return placed


def leader_width(words: Words) -> float:
    """Return the width in pixels of a leader, the sample after it, and the gap before the text."""
    return words.line * (LEAD + SAMPLE + GAP)
