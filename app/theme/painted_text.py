"""Frequently changing text, painted into a fixed number of lines so that no layout is triggered, and texts and scales
whose numbers come from another place in the window, to which a key or a double-click leads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPaintEvent, QPen, QTextLayout, QTextOption
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.labels import Label, plain_tip
from app.theme.painting import TOP_LEFT, frame, painter_of, write
from app.theme.tokens import Theme


class PaintedText(QWidget):
    """A paragraph of at most ``lines`` lines. If it does not fit, it is elided or replaced by a shorter version.

    A label lays out its entire window again whenever its text changes; this widget's size hint does not depend on
    its text.

    Args:
        role: its font in the type scale.
        colour: the theme's name of its colour.
        grown: enlargement of the font.
    """

    def __init__(self, role: str = "body", colour: str = "text", lines: int = 1, grown: float = 1.0) -> None:
        super().__init__()
        self._role, self._colour, self._lines, self._grown = role, colour, lines, grown
        self._text = self._shorter = ""
        self._look: tuple[Theme, float] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def text(self) -> str:
        """Return the full text, even if it does not fit."""
        return self._text

    def set_look(self, theme: Theme, scale: float) -> bool:
        """Set the font and the colour for this theme and scale. Return whether they have changed."""
        if self._look == (theme, scale):
            return False
        self._look = theme, scale
        self.setFont(theme.font(self._role, scale * self._grown))
        self.updateGeometry()
        self.update()
        return True

    def lines_needed(self, text: str) -> int:
        """Return the number of lines that ``text`` needs at the current width."""
        return len(self._lines_of(text))

    def set_lines(self, lines: int) -> None:
        """Set the number of lines, and with it the height."""
        if lines != self._lines:
            self._lines = lines
            self.updateGeometry()

    def show_text(self, text: str, theme: Theme, scale: float, shorter: str = "") -> None:
        """Show ``text`` in this theme and scale, or ``shorter`` if it does not fit."""
        if not self.set_look(theme, scale) and (text, shorter) == (self._text, self._shorter):
            return
        self._text, self._shorter = text, shorter
        self.setToolTip(plain_tip(text if shorter else ""))
        self.setAccessibleName(text)
        self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self.font())
        return QSize(0, math.ceil(self._lines * metrics.lineSpacing() + 1))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._look is None or not self._text:
            return
        painter, ink = painter_of(self, smooth=False), self._look[0].ink(self._colour)
        metrics = QFontMetricsF(self.font())
        for n, line in enumerate(self._broken()):
            box = QRectF(0, n * metrics.lineSpacing(), self.width(), metrics.height())
            write(painter, box, line, self.font(), ink, TOP_LEFT)

    def _broken(self) -> list[str]:
        lines = self._lines_of(self._text)
        if len(lines) > self._lines and self._shorter:
            lines = self._lines_of(self._shorter)
        if len(lines) <= self._lines:
            return [line.strip() for line in lines]
        rest = "".join(lines[self._lines - 1 :])
        cut = QFontMetricsF(self.font()).elidedText(rest, Qt.TextElideMode.ElideRight, self.width())
        return [*(line.strip() for line in lines[: self._lines - 1]), cut]

    def _lines_of(self, text: str) -> list[str]:
        """Return ``text`` broken between words at the current width."""
        layout = QTextLayout(text, self.font())
        layout.setTextOption(QTextOption())
        layout.beginLayout()
        starts = list[int]()
        while True:
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(max(self.width(), 1))
            starts.append(line.textStart())
        layout.endLayout()
        return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


if TYPE_CHECKING:
    Base = QWidget
else:
    Base = object


class Sourced(Base):
    """Mixin for a widget with computed numbers. Put it before the widget's class.

    Signals:
        source_wanted: emitted after E, Return or a double-click; show where the numbers come from.
    """

    source_wanted = Signal()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def explain_current(self) -> None:
        """Show where the numbers come from."""
        self.source_wanted.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.explain_current()
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        self.explain_current()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus():
            ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            frame(painter_of(self, smooth=False), ring, QPen(self.palette().windowText().color(), 2))


class SourcedLabel(Sourced, Label):
    """A label of this kind."""


class SourcedText(Sourced, PaintedText):
    """A painted text of this kind."""
