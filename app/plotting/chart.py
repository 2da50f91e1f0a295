"""The base of all charts: their title, a sentence in place of missing data, and the ring of the keyboard focus."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QPainter
from PySide6.QtWidgets import QSizePolicy

from app.theme.painted_ahead import PaintedAhead
from app.theme.painting import frame, write
from app.theme.styled import Styled

CLICK = 4
"""Maximum distance in pixels between press and release of a click."""


class Chart(Styled, PaintedAhead):
    """A chart: a base class before that of Qt.

    Attributes:
        title: its accessible name, also shown above it.
        empty: the sentence shown in place of the chart while there is no data; None to show the axes.
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        self.empty: str | None = None
        self._pressed: QPointF | None = None
        self._ringed = False
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(120, 80)
        self.setAccessibleName(title)

    def set_summary(self, sentence: str) -> None:
        """Set the accessible summary, one sentence that says what the chart shows."""
        if sentence != self.accessibleDescription():
            self.setAccessibleDescription(sentence)

    def _hover(self, place: Any) -> None:
        """Show the read-out at ``place``, or hide it if that is None."""
        raise NotImplementedError

    def _paint_over(self, painter: QPainter, instead: str | None) -> None:
        """Paint the sentence ``instead`` of everything else, if there is one, and the ring of the focus."""
        area = self.canvas.rect()
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if instead is not None:
            painter.fillRect(area, self.theme.colour("ground"))
            wrapped = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
            font, ink = self.theme.font("body", self.factor), self.theme.colour("muted")
            write(painter, QRectF(area).adjusted(24, 8, -24, -8), instead, font, ink, wrapped)
        if self._ringed:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            frame(painter, QRectF(area.adjusted(1, 1, -2, -2)), self.theme.ring)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._ringed = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.canvas.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._ringed = False
        self._hover(None)
        self.canvas.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(None)
