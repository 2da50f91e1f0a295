"""The colour scale under the token grid: the value of full tint, with signs in words, marks and glyphs."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QLinearGradient, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.numbers import shown
from app.theme.labels import plain_tip
from app.theme.sourced import Sourced
from app.theme.tokens import Theme
from app.token_grid.tints import Tint, strength
from grpo_core.text import tr

STOPS = 24
"""Number of colour stops of the scale. Qt interpolates between them."""
GAP, SHORT, LEAST = 8.0, 48.0, 24.0
"""Pixels: gap between the parts, minimum width of the scale at which labels fit next to it, and its minimum width."""


class TintLegend(Sourced, QWidget):
    """A labelled colour scale. It shows as many of the labels as fit; its accessible name has all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self._theme: Theme | None = None
        self._text = ("", "", "")
        self._extents = [""]
        self._signed = True
        self._scale = 1.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        font = self.font() if self._theme is None else self._theme.font("digits", self._scale)
        return QSize(200, round(QFontMetricsF(font).height() * 1.4))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def show_scale(
        self,
        theme: Theme,
        scale: float,
        tint: Tint,
        limit: float,
        known: bool,
        *,
        hatched: bool = True,
        left_out: bool = False,
    ) -> None:
        """Show the meaning of the ends of ``tint``.

        Args:
            limit: the value of full tint.
            known: False if the record lacks the quantity.
            hatched: clipped tokens are hatched.
            left_out: tokens that do not count in the loss are underlined.
        """
        self._theme, self._scale, self._signed = theme, scale, tint.signed
        number = shown(limit)
        extent = (tr("fixed √ scale ±{limit}") if tint.signed else tr("fixed √ scale 0 to {limit}")).format(
            limit=number
        )
        self._text = (tint.low, tint.high, extent if known else tint.absent)
        short = (tr("±{limit}") if tint.signed else tr("0 to {limit}")).format(limit=number)
        marks = [*[tr("underlined: not in the loss")] * left_out, *[tr("hatched: clipped")] * hatched]
        marked = ["    ".join((extent, *marks[:count])) for count in range(len(marks), -1, -1)]
        self._extents = [*marked, short] if known else [tint.absent]
        self.setAccessibleName(tr("Scale of {title}: {text}").format(title=tint.title, text=", ".join(self._text)))
        self.setToolTip(plain_tip(f"{tint.help}\n{self._extents[0]}"))
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._theme is None:
            return
        theme, painter = self._theme, QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font("digits", self._scale))
        metrics = painter.fontMetrics()
        low, high = (f"▼ {self._text[0]}", f"{self._text[1]} ▲") if self._signed else self._text[:2]
        height = self.height()
        space = self.width() - metrics.horizontalAdvance(low) - metrics.horizontalAdvance(high) - 5 * GAP
        extent = next((text for text in self._extents if metrics.horizontalAdvance(text) <= space - SHORT), "")
        x = self._word(painter, GAP, low)
        wide = min(max(self.width() * 0.25, SHORT), 180.0, max(space - metrics.horizontalAdvance(extent), LEAST))
        bar = QRectF(x, height * 0.28, wide, height * 0.44)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for stop in range(STOPS + 1):
            share = 2 * stop / STOPS - 1 if self._signed else stop / STOPS
            tint = QColor(theme.colour("push_up" if share >= 0 else "push_down"))
            tint.setAlphaF(0.06 + 0.74 * strength(share))
            gradient.setColorAt(stop / STOPS, tint)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(gradient)
        painter.drawRoundedRect(bar, 3, 3)
        if self._signed:
            painter.setPen(QPen(theme.colour("push_down"), 2, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(bar.left() + 2, bar.bottom()), QPointF(bar.center().x() - 4, bar.bottom()))
            painter.setPen(QPen(theme.colour("push_up"), 2))
            painter.drawLine(QPointF(bar.center().x() + 4, bar.top()), QPointF(bar.right() - 2, bar.top()))
        x = self._word(painter, bar.right() + GAP, high) + GAP
        painter.drawText(QPointF(x, self._base(painter)), extent)

    def _base(self, painter: QPainter) -> float:
        metrics = painter.fontMetrics()
        return (self.height() + metrics.ascent() - metrics.descent()) / 2

    def _word(self, painter: QPainter, x: float, text: str) -> float:
        assert self._theme is not None
        painter.setPen(self._theme.colour("muted"))
        painter.drawText(QPointF(x, self._base(painter)), text)
        return x + painter.fontMetrics().horizontalAdvance(text) + GAP
