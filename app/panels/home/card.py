"""A button with a small picture of a run: its reward curve, its title and its number of updates."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.panels.home.previews import Preview
from app.plotting.numbers import shown
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import plural, tr

WIDE, CURVE, PAD = 168, 56, 8
"""Pixels at 100 %: width of the card, height of the curve, and padding around both."""
TITLE_LINES = 2


class RunCard(QAbstractButton):
    """The card of one run. A click opens the run."""

    def __init__(self, preview: Preview, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.preview = preview
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._theme, self._scale = LIGHT, 1.0
        self.setText(preview.title)
        self.setAccessibleName(tr("Open {title}, {detail}").format(title=preview.title, detail=self.detail))
        self.setToolTip(plain_tip(f"{preview.title}\n{preview.path.name}"))

    @property
    def detail(self) -> str:
        if not len(self.preview.rewards):
            return plural("{steps:,} update", "{steps:,} updates", self.preview.steps).format(steps=self.preview.steps)
        last = shown(float(self.preview.rewards[-1]), 3)
        return plural(
            "{steps:,} update · reward {last}", "{steps:,} updates · reward {last}", self.preview.steps
        ).format(steps=self.preview.steps, last=last)

    def set_look(self, theme: Theme, scale: float) -> None:
        self._theme, self._scale = theme, scale
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        lines = ("section",) * TITLE_LINES + ("small",)
        words = sum(QFontMetricsF(self._theme.font(role, self._scale)).height() for role in lines)
        return QSize(round(WIDE * self._scale), round((CURVE + 3 * PAD) * self._scale + words))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, scale = QPainter(self), self._theme, self._scale
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        marked = self.hasFocus() or self.underMouse()
        painter.setPen(QPen(theme.colour("selection" if marked else "border"), theme.ring_width if marked else 1.0))
        painter.setBrush(theme.colour("surface"))
        painter.drawRoundedRect(frame, 6 * scale, 6 * scale)
        pad = PAD * scale
        curve = QRectF(frame.left() + pad, frame.top() + pad, frame.width() - 2 * pad, CURVE * scale)
        painter.setPen(theme.pen("reward", 1.6 * scale, Qt.PenStyle.SolidLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(self._curve(curve))
        top = curve.bottom() + pad
        texts = (("section", "text", self.text(), TITLE_LINES), ("small", "muted", self.detail, 1))
        for role, colour, text, lines in texts:
            font = theme.font(role, scale)
            metrics = QFontMetricsF(font)
            painter.setFont(font)
            painter.setPen(theme.ink(colour))
            # a wrapped line rarely fills the width
            cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, curve.width() * (1 + 0.8 * (lines - 1)))
            box = QRectF(curve.left(), top, curve.width(), lines * metrics.height())
            painter.drawText(box, Qt.TextFlag.TextWordWrap, cut)
            top += box.height()

    def _curve(self, area: QRectF) -> QPolygonF:
        """Return the curve scaled to ``area`` by its extreme rewards, or at mid-height if all are equal."""
        rewards = self.preview.rewards
        low, high = (float(rewards.min()), float(rewards.max())) if len(rewards) else (0.0, 0.0)
        across = area.width() / max(len(rewards) - 1, 1)
        heights = (rewards - low) / (high - low) if high > low else rewards * 0 + 0.5
        return QPolygonF(
            [QPointF(area.left() + n * across, area.bottom() - y * area.height()) for n, y in enumerate(heights)]
        )
