"""Painting of a table's cells, column by column: text, numbers, line samples, chips, and progress bars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPen

from app.plotting.table_model import WORDS, Marked, Numbered, TableModel, cell_meaning, cell_text
from app.theme.painting import CENTRE, LEFT, RIGHT, frame, write
from app.theme.tokens import Theme

SAMPLE = 22
"""Length in pixels, at 100 %, of the line sample before the text."""
LEFT_TO_RIGHT = Qt.LayoutDirection.LeftToRight
MOST_SIGNS = 500
"""Maximum number of characters painted in a cell. No column is wider."""


class TablePainter:
    """Painter of the cells of one table, for one theme and scale.

    Attributes:
        font: font of all columns except those of kind "mono" and "chip".
    """

    def __init__(self, model: TableModel, theme: Theme, factor: float) -> None:
        self._model, self._theme, self._factor = model, theme, factor
        self.font = theme.font("reading", factor)
        self.metrics = QFontMetrics(self.font)
        self._mono_font = theme.font("answer", factor)
        self._mono_metrics = QFontMetrics(self._mono_font)
        # most cells show the text of another cell, or of the last frame
        self._wide = lru_cache(1024)(self.metrics.horizontalAdvance)
        self._mono_wide = lru_cache(1024)(self._mono_metrics.horizontalAdvance)

    def paint_column(
        self, painter: QPainter, column: int, left: float, width: float, high: float, rows: Sequence[tuple[int, float]]
    ) -> None:
        """Paint cells of one column.

        Args:
            left, width: its left edge and its width, in pixels.
            high: height of a row in pixels.
            rows: (displayed row, top) of the cells to paint.
        """
        # The model is called directly, because a call through Qt costs more than the method.
        what, pad = self._model.columns[column], 8 * self._factor
        kind, space, left = what.kind, width - 2 * pad, left + pad
        metrics, advance = (self._mono_metrics, self._mono_wide) if kind == "mono" else (self.metrics, self._wide)
        align = LEFT if kind in WORDS else RIGHT
        if kind != "chip":
            painter.setFont(self._mono_font if kind == "mono" else self.font)
        before, inked = painter.layoutDirection(), ""
        if before is not LEFT_TO_RIGHT and kind not in ("text", "chip", "line", "progress"):
            painter.setLayoutDirection(LEFT_TO_RIGHT)  # the sign is before its number
        for (_, top), value in zip(rows, self._model.values([place for place, _ in rows], column), strict=True):
            text = cell_text(value, what)
            if not text:
                continue
            inner, narrower = QRectF(left, top, space, high), space
            if kind == "chip":
                self._paint_chip(painter, inner, text)
                continue
            if kind == "line":
                inner, inked = self._paint_sample(painter, inner, value), ""
                narrower = inner.width()
            if len(text) > MOST_SIGNS:  # measuring a long text takes longer than painting all other cells
                text = text[:MOST_SIGNS] + "…"
            wide = advance(text)
            if kind not in WORDS and wide > narrower:
                text = cell_text(value, what, narrow=True)
                wide = advance(text)
            if wide > narrower:
                text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, round(narrower + 1))
            meaning = cell_meaning(value, what)
            if meaning != inked:
                painter.setPen(self._theme.ink(meaning))
                inked = meaning
            painter.drawText(inner, align, text)
            if isinstance(value, Numbered) and kind == "progress":
                self._paint_progress(painter, inner, value.number)
        if before is not LEFT_TO_RIGHT:
            painter.setLayoutDirection(before)

    def _paint_sample(self, painter: QPainter, area: QRectF, value: object) -> QRectF:
        """Paint a sample of the line style of ``value``, and return the remaining rectangle."""
        wide, meaning = SAMPLE * self._factor, value.meaning if isinstance(value, Marked) else "text"
        style = value.line if isinstance(value, Marked) and value.line is not None else Qt.PenStyle.SolidLine
        mirrored = painter.layoutDirection() is Qt.LayoutDirection.RightToLeft
        left, y = area.right() - wide if mirrored else area.left(), area.center().y()
        painter.setPen(self._theme.pen(meaning, 2.0, style))
        painter.drawLine(QPointF(left, y), QPointF(left + wide, y))
        gap = wide + 6 * self._factor
        return area.adjusted(0, 0, -gap, 0) if mirrored else area.adjusted(gap, 0, 0, 0)

    def _paint_progress(self, painter: QPainter, area: QRectF, share: float) -> None:
        """Paint a bar to the right of a text such as “34 / 60”."""
        high, left = 4 * self._factor, area.left() + self._wide("000 / 000") + 8 * self._factor
        bar = QRectF(left, area.center().y() - high / 2, area.right() - left, high)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame(painter, bar, None, self._theme.colour("border"), radius=high / 2)
        if share > 0:
            done = bar.adjusted(0, 0, bar.width() * (share - 1), 0)
            frame(painter, done, None, self._theme.colour("accent"), radius=high / 2)
        painter.restore()

    def paint_lines(self, painter: QPainter, areas: Sequence[QRectF], *, chosen: bool) -> None:
        """Paint a hairline below each row, or stronger lines above and below each if they are selected."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(QPen(self._theme.colour("selection" if chosen else "border"), 1))
        painter.drawLines([QLineF(area.bottomLeft(), area.bottomRight()) for area in areas])
        if chosen:
            painter.drawLines([QLineF(area.topLeft(), area.topRight()) for area in areas])

    def paint_focus(self, painter: QPainter, area: QRectF) -> None:
        frame(painter, area.adjusted(1, 1, -1, -1), self._theme.ring)

    def _paint_chip(self, painter: QPainter, area: QRectF, text: str) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = self._theme.font("digits", self._factor)
        metrics = QFontMetrics(font)
        wide, high = metrics.horizontalAdvance(text) + 12 * self._factor, metrics.height() + 2
        box = QRectF(area.left(), area.center().y() - high / 2, min(wide, area.width()), high)
        frame(painter, box, QPen(self._theme.colour("border"), 1), self._theme.colour("surface"), radius=high / 2)
        write(painter, box, text, font, self._theme.ink("muted"), CENTRE)
