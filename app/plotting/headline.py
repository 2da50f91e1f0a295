"""A sentence above a picture, painted on one line so that changing it does not affect the layout."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.tokens import LIGHT, Theme


def fitting(text: str, shorter: str, metrics: QFontMetricsF, width: int) -> str:
    """Return ``text`` if it is at most ``width`` pixels wide, otherwise ``shorter``, elided if necessary.

    If ``shorter`` is empty, ``text`` itself is elided.
    """
    fits = not shorter or metrics.horizontalAdvance(text) <= width
    return metrics.elidedText(text if fits else shorter, Qt.TextElideMode.ElideRight, width)


class Headline(QWidget):
    """One line of text, replaced by a shorter text if it does not fit.

    The accessible description is always the full text.

    Attributes:
        text: the full text.
        shorter: a shorter form of it, or empty.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = self.shorter = ""
        self._theme: Theme = LIGHT
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale."""
        self._theme = theme
        self.setFont(theme.font("digits", scale))
        self.updateGeometry()

    def say(self, text: str, shorter: str = "") -> None:
        """Show ``text``, or ``shorter`` if ``text`` does not fit."""
        if (text, shorter) != (self.text, self.shorter):
            self.text, self.shorter = text, shorter
            self.setAccessibleDescription(text)
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(1, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self._theme.ink("text"))
        text = fitting(self.text, self.shorter, QFontMetricsF(self.font()), self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
