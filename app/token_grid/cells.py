"""Painting of tokens and of the notes next to a completion. Colours are mixed once per theme and scale, not once per
token.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPen, QStaticText, QTransform

from app.theme.painting import RIGHT, frame, write
from app.theme.tokens import Theme
from app.token_grid.tints import strength


@lru_cache(maxsize=1 << 17)
def visible_text(token: str) -> str:
    """Return the text of ``token`` on one line, with symbols for line breaks, tabs, and the spaces at its ends."""
    if token.strip(" ") == token and token.isprintable():
        return token
    plain = token.replace("\r", "␍").replace("\n", "⏎").replace("\t", "⇥")
    return plain.replace(" ", "·") if plain.strip(" ") != plain else plain


LEVELS = 32
BETWEEN = 14.0
"""Pixels between two columns of notes."""
END = "⏎"
"""Symbol of the end-of-sequence token, which is a token like any other but drawn less prominently."""
Note = tuple[str, str]
"""A short note next to a completion, and the meaning that determines its colour."""


def token_text(words: Sequence[str], token: int) -> str:
    """Return the :func:`visible_text` of a token of the vocabulary ``words``, or a question mark if it is unknown."""
    return visible_text(words[token]) if 0 <= token < len(words) else "?"


class Cells:
    """The pens, brushes and fonts for one theme and scale."""

    def __init__(self, theme: Theme, scale: float) -> None:
        self.theme = theme
        self.mono, self.small = theme.font("answer", scale), theme.font("digits", scale)
        metrics = QFontMetricsF(self.mono)
        self.glyph = metrics.horizontalAdvance("0")
        self.gap = max(self.glyph * 0.25, 2.0)
        self.height = metrics.height() * 1.35
        self.line = self.height * 1.22
        self.label = self.glyph * 4
        self._drop = (self.height - metrics.height()) / 2
        self._texts: dict[str, QStaticText] = {}
        self._quiet = QPen(theme.colour("muted"))
        self._ring = theme.ring
        self._edges = {
            True: QPen(theme.colour("push_up"), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap),
            False: QPen(theme.colour("push_down"), 2, Qt.PenStyle.DashLine, Qt.PenCapStyle.FlatCap),
        }
        self._hatches = {True: theme.hatch("push_up"), False: theme.hatch("push_down")}
        self._lit = theme.faint("text", 0.35)
        self._hatch_on_full = theme.hatch("ground")
        self._dead = QPen(theme.colour("dead"), 1, Qt.PenStyle.DotLine)

    def paint(
        self,
        painter: QPainter,
        box: QRectF,
        text: str,
        share: float,
        *,
        signed: bool,
        clipped: bool,
        dead: bool,
        counts: bool = True,
    ) -> None:
        """Paint a token.

        The tint shows the magnitude; colour and edge show the sign: solid above for up, dashed below for down.
        Clipped tokens are hatched. A token that does not count in the loss has a line below it and no tint.
        """
        up = share >= 0
        ink = self._quiet
        if not counts:
            painter.setPen(self._quiet)
            painter.drawLine(box.bottomLeft(), box.bottomRight())
        elif dead:
            painter.setPen(self._dead)
            painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
        else:
            level = round(strength(share) * LEVELS)
            fill, ink = _ramp(self.theme, "push_up" if up else "push_down")[level]
            painter.fillRect(box, fill)
            if clipped:
                painter.fillRect(box, self._hatches[up] if level < LEVELS // 2 else self._hatch_on_full)
            if signed and level > LEVELS // 8:
                painter.setPen(self._edges[up])
                y = box.top() + 1 if up else box.bottom() - 1
                painter.drawLine(QPointF(box.left() + 2, y), QPointF(box.right() - 2, y))
            if text == END and level < LEVELS // 3:
                ink = self._quiet
        painter.setPen(ink)
        painter.drawStaticText(QPointF(box.left() + 0.45 * self.glyph, box.top() + self._drop), self._laid(text))

    def _laid(self, text: str) -> QStaticText:
        """Return the layout of a token's text, cached because this is four times as fast as shaping the text at
        every occurrence.
        """
        if text not in self._texts:
            laid = self._texts[text] = QStaticText(text)
            laid.setTextFormat(Qt.TextFormat.PlainText)
            laid.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
            laid.prepare(QTransform(), self.mono)
        return self._texts[text]

    def ring(self, painter: QPainter, box: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame(painter, box.adjusted(-1.5, -1.5, 1.5, 1.5), self._ring, radius=4)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def light(self, painter: QPainter, box: QRectF) -> None:
        """Highlight the token at which the completions of a group diverge."""
        painter.fillRect(box.adjusted(-2, -3, 2, 3), self._lit)

    def bar(self, painter: QPainter, space: QRectF, share: float) -> None:
        """Paint a bar as wide as ``share`` of ``space``: filled if ``share`` is positive, hatched if negative."""
        if share:
            bar = QRectF(space.left(), space.top(), max(space.width() * abs(share), 1.0), space.height())
            painter.fillRect(bar, self.theme.colour("push_up") if share > 0 else self._hatches[False])

    def columns(self, notes: Sequence[Sequence[Note]], space: float) -> list[float]:
        """Return the width of each column of notes including its gap. Columns that do not fit into ``space`` are
        left out.
        """
        metrics = QFontMetricsF(self.small)
        count = max(map(len, notes), default=0)
        widths = [
            max(metrics.horizontalAdvance(row[i][0]) for row in notes if len(row) > i) + BETWEEN for i in range(count)
        ]
        while len(widths) > 1 and sum(widths) > space:
            widths.pop()
        return widths

    def paint_notes(self, painter: QPainter, place: QRectF, notes: Sequence[Note], widths: Sequence[float]) -> None:
        """Paint the notes next to a completion, in columns starting at the left of ``place``."""
        x = place.left()
        for (text, colour), width in zip(notes, widths, strict=False):
            area = QRectF(x, place.top(), width, place.height())
            write(painter, area, text, self.small, self.theme.ink(colour))
            x += width

    def paint_name(self, painter: QPainter, place: QRectF, name: str) -> None:
        """Paint the name of a row, which is the number of its completion, to the left of its tokens."""
        write(painter, place, name, self.small, self._quiet.color(), RIGHT)


@lru_cache(maxsize=16)
def _ramp(theme: Theme, meaning: str) -> list[tuple[QBrush, QPen]]:
    """Return the (fill, text pen) of each level from no tint to full tint."""
    fills = [theme.faint(meaning, 0.06 + 0.74 * level / LEVELS) for level in range(LEVELS + 1)]
    return [(QBrush(fill), QPen(theme.on(fill))) for fill in fills]
