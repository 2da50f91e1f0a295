"""A typed completion token by token, and where it stands among the advantages of its group."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.numbers import shown
from app.plotting.theme import Theme
from grpo_core.questions import Answer

UNLIKELY = 8.0
"""Nats at which a token's bar is full."""


class PlacedStrip(QWidget):
    """Above, one column a token: its text, a bar of −log π, the number. Below, an axis of advantages: one mark a
    completion of the group, the typed one ringed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._scale = 1.0
        self._words: list[str] = []
        self._answer: Answer | None = None
        self._advantages = np.empty(0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Your completion in its group")

    def sizeHint(self) -> QSize:
        return QSize(320, self.fontMetrics().height() * 7)

    def minimumSizeHint(self) -> QSize:
        return QSize(100, self.fontMetrics().height() * 5)

    def show_nothing(self, theme: Theme, scale: float) -> None:
        """No answer yet."""
        self._theme, self._scale, self._answer = theme, scale, None
        self.update()

    def show_answer(self, theme: Theme, scale: float, words: list[str], answer: Answer, advantages: np.ndarray) -> None:
        """Show an answer; ``advantages`` (G + 1,) has the typed completion last."""
        self._theme, self._scale, self._words = theme, scale, words
        self._answer, self._advantages = answer, advantages
        self.setAccessibleDescription(
            ", ".join(f"{word} {shown(float(x))}" for word, x in zip(words, answer.logp, strict=True))
        )
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None or self._answer is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line = painter.fontMetrics().height()
        below = line * 2.6
        self._paint_tokens(painter, QRectF(0, 0, self.width(), max(self.height() - below, line * 2)))
        self._paint_group(painter, QRectF(0, self.height() - below, self.width(), below))

    def _paint_tokens(self, painter: QPainter, area: QRectF) -> None:
        assert self._theme is not None and self._answer is not None
        theme = self._theme
        mono, small = theme.font("mono", self._scale), theme.font("small", self._scale)
        painter.setFont(small)
        needed = painter.fontMetrics().horizontalAdvance("−00.000") + 6.0
        width = min(needed, area.width() / max(len(self._words), 1))
        for i, (word, logp) in enumerate(zip(self._words, self._answer.logp, strict=True)):
            cell = QRectF(area.left() + i * width, area.top(), width - 2, area.height())
            painter.setFont(mono)
            painter.setPen(theme.colour("text"))
            painter.drawText(cell, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, word)
            top = painter.fontMetrics().height() + 2.0
            painter.setFont(small)
            label = painter.fontMetrics().height()
            room = max(cell.height() - top - label - 2, 4.0)
            bar = room * min(-float(logp) / UNLIKELY, 1.0)
            painter.fillRect(
                QRectF(cell.left() + 2, cell.top() + top, cell.width() - 4, max(bar, 1.0)), theme.colour("old")
            )
            if width >= needed:
                painter.setPen(theme.colour("muted"))
                painter.drawText(cell, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom, shown(float(logp)))

    def _paint_group(self, painter: QPainter, area: QRectF) -> None:
        assert self._theme is not None
        theme = self._theme
        painter.setFont(theme.font("small", self._scale))
        label = painter.fontMetrics().horizontalAdvance("−0.000 ") + 8.0
        reach = max(float(np.abs(self._advantages).max(initial=0.0)), 1e-9)
        left, right, middle = area.left() + label, area.right() - label, area.top() + area.height() * 0.45
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(QPointF(left, middle), QPointF(right, middle))
        centre = (left + right) / 2
        painter.drawLine(QPointF(centre, middle - 6), QPointF(centre, middle + 6))
        painter.setPen(theme.colour("muted"))
        ends = area.adjusted(0, 0, 0, -area.height() * 0.1)
        painter.drawText(ends, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown(-reach))
        painter.drawText(ends, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, shown(reach))
        painter.drawText(
            area, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom, "advantage in the group, yours ringed"
        )
        stacked: dict[int, int] = {}
        for i, advantage in enumerate(self._advantages):
            x = centre + float(advantage) / reach * (right - left) / 2
            height = stacked[round(x)] = stacked.get(round(x), -1) + 1
            dot = QPointF(x, middle - height * 7 * self._scale)
            up = advantage >= 0
            painter.setPen(QPen(theme.ink("push_up" if up else "push_down"), 1.5))
            painter.setBrush(theme.colour("push_up") if up else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(dot, 3.2 * self._scale, 3.2 * self._scale)
            if i == len(self._advantages) - 1:
                painter.setPen(QPen(theme.colour("selection"), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(dot, 6.5 * self._scale, 6.5 * self._scale)
