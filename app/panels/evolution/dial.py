"""The share of right answers as one large number on a dial, with the initial value marked."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.labels import plain_tip
from app.theme.sourced import Sourced
from app.theme.tokens import Theme
from app.workspace.evolution import RightShare
from grpo_core.text import tr

WIDE, HIGH, LINE = 152, 92, 17
"""Pixels at 100 %: width, height, and the extra height of a second line."""
HELP_HELD_OUT = tr(
    "Right answers to prompts that are never trained on, always taking the likeliest token. E goes to the update that "
    "measured it and explains it."
)
HELP_SAMPLED = tr(
    "Right answers among the sampled completions of the update shown, on which its rewards are based. "
    "Below it, right answers to prompts that are never trained on, always taking the likeliest token "
    "(greedy). E explains the number."
)


class RightDial(Sourced, QWidget):
    """A semicircular dial from 0 to 100 %. E, Return or a double click explains the number.

    It shows the share of correct held-out answers. For a model from a folder, it shows the share of correct sampled
    completions, with the held-out share in a line below.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._scale = 1.0
        self._held_out: RightShare | None = None
        self._sampled: RightShare | None = None

    def show_share(self, held_out: RightShare | None, sampled: RightShare | None, theme: Theme, scale: float) -> None:
        high = HIGH + (LINE if sampled is not None else 0)
        self.setFixedSize(QSize(round(WIDE * scale), round(high * scale)))
        self._theme, self._scale, self._held_out, self._sampled = theme, scale, held_out, sampled
        self.setAccessibleName(tr("Held-out accuracy") if sampled is None else tr("Right answers"))
        self.setToolTip(plain_tip(HELP_HELD_OUT if sampled is None else HELP_SAMPLED))
        self.setAccessibleDescription(self.words)
        self.update()

    @property
    def words(self) -> str:
        """The displayed value as a sentence."""
        sentences = []
        if self._sampled is not None and self._sampled.last is not None and self._sampled.first is not None:
            sentences.append(
                tr(
                    "{now:.0f}% of the update's sampled completions are right, {start:.0f}% at the first update."
                ).format(now=100 * self._sampled.last, start=100 * self._sampled.first)
            )
        held_out = self._held_out
        if held_out is None:
            return " ".join(sentences)
        if held_out.last is None or held_out.first is None:
            sentences.append(tr("Held-out prompts have not been tried yet."))
        else:
            sentences.append(
                tr(
                    "{now:.0f}% of the held-out prompts are answered right, {start:.0f}% at the start, "
                    "always taking the likeliest token."
                ).format(now=100 * held_out.last, start=100 * held_out.first)
            )
        return " ".join(sentences)

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self._held_out if self._sampled is None else self._sampled
        if self._theme is None or shown is None:
            return
        theme, scale = self._theme, self._scale
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre, radius = QPointF(self.width() / 2, 72 * scale), 58 * scale
        circle = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
        wide = 9 * scale
        painter.setPen(QPen(theme.colour("border"), wide, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawArc(circle, 0, 180 * 16)
        middle = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
        if shown.last is not None:
            painter.setPen(QPen(theme.colour("push_up"), wide, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            painter.drawArc(circle, 180 * 16, -round(180 * 16 * shown.last))
        if shown.first is not None:
            angle = math.pi * (1 - shown.first)
            way = QPointF(math.cos(angle), -math.sin(angle))
            painter.setPen(QPen(theme.colour("text"), 2 * scale))
            painter.drawLine(centre + way * (radius - wide), centre + way * (radius + wide * 0.8))
        painter.setPen(theme.colour("text"))
        painter.setFont(theme.font("counter", scale))
        number = QRectF(0, 34 * scale, self.width(), 36 * scale)
        painter.drawText(number, middle, "—" if shown.last is None else f"{shown.last:.0%}")
        painter.setPen(theme.colour("muted"))
        room = self.width() - 8 * scale  # inside the frame of the keyboard focus
        for place, line in enumerate(self.lines):
            font = theme.font("digits", scale)
            needed = QFontMetricsF(font).horizontalAdvance(line)
            if needed > room:  # in presenting mode the letters are larger, but the dial is not
                font.setPixelSize(int(font.pixelSize() * room / needed))
            painter.setFont(font)
            painter.drawText(QRectF(0, (73 + place * LINE) * scale, self.width(), LINE * scale), middle, line)
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("selection"), theme.ring_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines below the number, which say what it counts."""
        held_out, lines = self._held_out, list[str]()
        if self._sampled is not None:
            lines.append(_counted(self._sampled, tr("sampled: {right} of {asked}"), tr("of the sampled completions")))
        if held_out is not None and lines:
            lines.append(
                _counted(held_out, tr("greedy, held out: {right} of {asked}"), tr("greedy, held out: {share:.0%}"))
            )
        elif held_out is not None:
            lines.append(_counted(held_out, tr("held out, greedy: {right} of {asked}"), tr("of the held-out prompts")))
        return tuple(lines)


def _counted(share: RightShare, counts: str, uncounted: str) -> str:
    """Fill in ``counts`` if the number of judged answers is known, otherwise ``uncounted``."""
    if share.last is None:
        return tr("held out: not asked yet")
    text = counts if share.asked else uncounted
    return text.format(right=share.right, asked=share.asked, share=share.last)
