"""A widget that shows one formula."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.formula.plain import plain_text
from app.formula.render import Picture, picture
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme

SHRINK_TO = 0.6
"""A formula that is too wide is drawn smaller down to this share; beyond, its plain text wraps instead."""


class FormulaLabel(QWidget):
    """A formula in the text colour of the theme; its accessible name is its plain text.

    ``pixels`` is the size of its letters at 100 %.
    """

    def __init__(self, latex: str = "", pixels: float = 16.0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.theme, self.factor, self._pixels = LIGHT, 1.0, pixels
        self.latex, self.plain, self._meaning = "", "", "text"
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)  # fixed: no second line
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.show_latex(latex, self.theme, self.factor)

    def show_latex(
        self, latex: str, theme: Theme, scale: float, *, plain: str | None = None, meaning: str = "text"
    ) -> None:
        """Show ``latex``; ``plain`` says it in words where the default is not good enough."""
        words = plain_text(latex) if plain is None else plain
        if (latex, words, theme, scale, meaning) == (self.latex, self.plain, self.theme, self.factor, self._meaning):
            return
        self.latex, self.plain, self._meaning = latex, words, meaning
        self.theme, self.factor = theme, scale
        self.setFont(theme.font("mono", scale))
        self.setAccessibleName(words)
        self.setToolTip(plain_tip(words))
        self.updateGeometry()
        self.update()

    @property
    def drawn(self) -> Picture | None:
        """The picture, at this screen's resolution; None where the plain text stands in."""
        if not self.latex:
            return None
        colour = self.theme.ink(self._meaning).name()
        return picture(self.latex, self._pixels * self.factor, colour, self.devicePixelRatioF())

    def sizeHint(self) -> QSize:
        drawing = self.drawn
        if drawing is not None:
            return QSize(round(drawing.size.width()) + 1, round(drawing.size.height()) + 1)
        return self.fontMetrics().size(0, self.plain) if self.plain else QSize(0, 0)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.sizeHint().width(), round(80 * self.factor)), 0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        drawing = self.drawn
        if drawing is not None and self._shrunk(drawing, width) >= SHRINK_TO:
            return round(drawing.size.height() * self._shrunk(drawing, width)) + 1
        return self._text_area(width).height() if self.plain else 0

    def _shrunk(self, drawing: Picture, width: float) -> float:
        return min(width / max(drawing.size.width(), 1.0), 1.0)

    def _text_area(self, width: int) -> QSize:
        room = QRectF(0, 0, width, 10_000).toRect()
        return self.fontMetrics().boundingRect(room, int(Qt.TextFlag.TextWordWrap), self.plain).size()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, drawing = QPainter(self), self.drawn
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        share = self._shrunk(drawing, self.width()) if drawing is not None else 0.0
        if drawing is not None and share >= SHRINK_TO:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            target = QRectF(QPointF(0, (self.height() - drawing.size.height() * share) / 2), drawing.size * share)
            # Drawn at whole pixels when it is not shrunk, or its hairlines blur.
            if share == 1.0:
                target.moveTop(round(target.top()))
            painter.drawImage(target, drawing.image)
        else:
            painter.setPen(self.theme.ink(self._meaning))
            painter.drawText(self.rect(), int(Qt.TextFlag.TextWordWrap), self.plain)
