"""The held-out accuracy as one large number on a dial, with its start marked."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.tokens import Theme
from app.workspace.held_out import HeldOut
from grpo_core.text import tr

WIDE, HIGH = 152, 92
"""Pixels at 100 %."""


class HeldOutDial(QWidget):
    """Half a circle from 0 to 100 %. E, Return or a double click explains the number.

    Signals:
        wanted: explain it.
    """

    wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._scale = 1.0
        self._held_out: HeldOut | None = None
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(tr("Held-out accuracy"))
        self.setToolTip(
            tr(
                "Right answers to prompts that are never trained on, always taking the likeliest token. E goes to the "
                "update that measured it and explains it."
            )
        )

    def show_share(self, held_out: HeldOut, theme: Theme, scale: float) -> None:
        """Show what was measured last."""
        if (theme, scale) != (self._theme, self._scale):
            self.setFixedSize(QSize(round(WIDE * scale), round(HIGH * scale)))
        self._theme, self._scale, self._held_out = theme, scale, held_out
        self.setAccessibleDescription(self.words)
        self.update()

    @property
    def words(self) -> str:
        """The value shown, in a sentence."""
        held_out = self._held_out
        if held_out is None or held_out.last is None or held_out.first is None:
            return tr("Held-out prompts have not been asked yet.")
        return tr(
            "{now:.0f} % of the held-out prompts are answered right, {start:.0f} % at the start, "
            "always taking the likeliest token."
        ).format(now=100 * held_out.last, start=100 * held_out.first)

    def explain_current(self) -> None:
        """Ask for the number's explanation."""
        self.wanted.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None or self._held_out is None:
            return
        theme, scale, held_out = self._theme, self._scale, self._held_out
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre, radius = QPointF(self.width() / 2, 72 * scale), 58 * scale
        circle = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
        wide = 9 * scale
        painter.setPen(QPen(theme.colour("border"), wide, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawArc(circle, 0, 180 * 16)
        middle = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
        if held_out.last is not None:
            painter.setPen(QPen(theme.colour("push_up"), wide, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            painter.drawArc(circle, 180 * 16, -round(180 * 16 * held_out.last))
        if held_out.first is not None:
            angle = math.pi * (1 - held_out.first)
            way = QPointF(math.cos(angle), -math.sin(angle))
            painter.setPen(QPen(theme.colour("text"), 2 * scale))
            painter.drawLine(centre + way * (radius - wide), centre + way * (radius + wide * 0.8))
        painter.setPen(theme.colour("text"))
        painter.setFont(theme.font("counter", scale))
        number = QRectF(0, 34 * scale, self.width(), 36 * scale)
        painter.drawText(number, middle, "—" if held_out.last is None else f"{held_out.last:.0%}".replace("%", " %"))
        painter.setPen(theme.colour("muted"))
        below, font = self._below(held_out), theme.font("digits", scale)
        needed = QFontMetricsF(font).horizontalAdvance(below)
        if needed > self.width():  # before a class letters are larger, the dial is not
            font.setPixelSize(int(font.pixelSize() * self.width() / needed))
        painter.setFont(font)
        painter.drawText(QRectF(0, 73 * scale, self.width(), 17 * scale), middle, below)
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("selection"), theme.ring_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)

    def _below(self, held_out: HeldOut) -> str:
        if held_out.last is None:
            return tr("held out: not asked yet")
        if not held_out.asked:
            return tr("of the held-out prompts")
        return tr("held out, greedy: {right} of {asked}").format(
            right=round(held_out.last * held_out.asked), asked=held_out.asked
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.wanted.emit()
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.wanted.emit()
