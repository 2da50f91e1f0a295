"""A widget that shows one formula."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.formula.line_breaking import breakings
from app.formula.plain import plain_text, spoken_formula
from app.formula.render import Picture, picture
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme

SHRINK_TO = 0.6
"""Minimum scale of a formula that is too wide. Beyond that, it is broken into lines."""
BROKEN_TO = 0.8
"""Minimum scale of the lines of a broken formula. If no line breaks achieve it, :data:`SHRINK_TO` applies."""
MOST_LINES, LEADING = 4, 0.35
"""Maximum number of lines, beyond which the plain text is wrapped instead, and the gap between two lines in units of
the font size.
"""

PIXELS = 16.0
"""Font size of a formula at 100 %."""


class FormulaLabel(QWidget):
    """A formula in the text colour of the theme. Its accessible name is its plain text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language
        self.theme, self.factor = LIGHT, 1.0
        self.latex = self.plain = ""
        self._laid: tuple[int, tuple[Picture, ...]] | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)  # fixed: no second line
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_latex(self, latex: str, theme: Theme, scale: float) -> None:
        if (latex, theme, scale) == (self.latex, self.theme, self.factor):
            return
        self.latex, self.plain = latex, plain_text(latex)
        self.theme, self.factor = theme, scale
        self._laid = None
        self.setFont(theme.font("mono", scale))
        self.setAccessibleName(spoken_formula(self.plain))
        self.setToolTip(plain_tip(self.plain))
        self.updateGeometry()
        self.update()

    @property
    def drawn(self) -> Picture | None:
        """The picture on one line, at this screen's resolution, or None if the plain text is shown instead."""
        return self._draw(self.latex) if self.latex else None

    def _draw(self, latex: str) -> Picture | None:
        colour = self.theme.ink("text").name()
        return picture(latex, PIXELS * self.factor, colour, self.devicePixelRatioF())

    def lines(self, width: int) -> tuple[Picture, ...]:
        """Return the formula within ``width`` pixels, on as few lines as possible, or an empty tuple if its plain
        text is shown.
        """
        if self._laid is None or self._laid[0] != width:
            self._laid = width, self._broken(width)
        return self._laid[1]

    def _broken(self, width: int) -> tuple[Picture, ...]:
        whole = self.drawn
        if whole is None:
            return ()
        if _share((whole,), width) >= SHRINK_TO:
            return (whole,)
        sign = whole.size.width() / max(len(self.plain), 1)
        for least in (BROKEN_TO, SHRINK_TO):
            for rows in breakings(self.latex, MOST_LINES):
                if width < 0.8 * least * sign * max(len(plain_text(row)) for row in rows):  # not worth drawing
                    continue
                drawn = [self._draw(row) for row in rows]
                lines = tuple(line for line in drawn if line is not None)
                if len(lines) == len(rows) and _share(lines, width) >= least:
                    return lines
        return ()

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
        lines = self.lines(width)
        if lines:
            return round(self._height(lines, _share(lines, width))) + 1
        return self._text_area(width).height() if self.plain else 0

    def _height(self, lines: Sequence[Picture], share: float) -> float:
        """Return the height in pixels of ``lines``, drawn at scale ``share``."""
        between = LEADING * PIXELS * self.factor * (len(lines) - 1)
        return share * (sum(line.size.height() for line in lines) + between)

    def _text_area(self, width: int) -> QSize:
        space = QRectF(0, 0, width, 10_000).toRect()
        return self.fontMetrics().boundingRect(space, int(Qt.TextFlag.TextWordWrap), self.plain).size()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, lines = QPainter(self), self.lines(self.width())
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        if not lines:
            painter.setPen(self.theme.ink("text"))
            painter.drawText(self.rect(), int(Qt.TextFlag.TextWordWrap), self.plain)
            return
        share = _share(lines, self.width())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        top = (self.height() - self._height(lines, share)) / 2
        for line in lines:
            target = QRectF(QPointF(0, top), line.size * share)
            if share == 1.0:  # at whole pixels, so that hairlines are not blurred
                target.moveTop(round(target.top()))
            painter.drawImage(target, line.image)
            top += share * (line.size.height() + LEADING * PIXELS * self.factor)


def _share(lines: Sequence[Picture], width: float) -> float:
    """Return the scale at which the widest of ``lines`` fits."""
    return min(width / max(1.0, *(line.size.width() for line in lines)), 1.0)
