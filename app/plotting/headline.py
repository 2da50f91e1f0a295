"""A sentence in the header above a picture, painted on one line: another text lays nothing out anew."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.tokens import LIGHT, Theme


class Headline(QWidget):
    """One line of text, cut at its end where it has no room; the whole of it is its description.

    Attributes:
        text: what it shows.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = ""
        self._theme: Theme = LIGHT
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_look(self, theme: Theme, scale: float) -> None:
        """Other colours, another size."""
        self._theme = theme
        self.setFont(theme.font("digits", scale))
        self.updateGeometry()

    def say(self, text: str) -> None:
        """Show ``text`` instead."""
        if text != self.text:
            self.text = text
            self.setAccessibleDescription(text)
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(1, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self._theme.ink("text"))
        text = self.fontMetrics().elidedText(self.text, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
