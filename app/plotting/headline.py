"""A sentence in the header above a picture, painted on one line: another text lays nothing out anew."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.tokens import LIGHT, Theme


def fitting(text: str, shorter: str, metrics: QFontMetricsF, width: int) -> str:
    """``text`` where it is at most ``width`` pixels wide, else ``shorter``. Cut at its end where that is too wide too.

    Without a shorter text (empty) the text itself is cut.
    """
    fits = not shorter or metrics.horizontalAdvance(text) <= width
    return metrics.elidedText(text if fits else shorter, Qt.TextElideMode.ElideRight, width)


class Headline(QWidget):
    """One line of text, in fewer words where it has no room. The whole of it is its description.

    Attributes:
        text: what it says.
        shorter: the same in fewer words, or empty.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = self.shorter = ""
        self._theme: Theme = LIGHT
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_look(self, theme: Theme, scale: float) -> None:
        """Other colours, another size."""
        self._theme = theme
        self.setFont(theme.font("digits", scale))
        self.updateGeometry()

    def say(self, text: str, shorter: str = "") -> None:
        """Show ``text`` instead, or ``shorter`` where it has no room."""
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
