"""Input of a prediction: the base class, and the choice among several options.

Left, Right and Space control the lesson; Up, Down, digits and Return control the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.tokens import LIGHT, RADIUS, Theme
from grpo_core.text import tr

Key = Qt.Key


class Input(QWidget):
    """Base class of all prediction inputs.

    Signals:
        placed: emitted when the guess is confirmed with Return or a double click.
        changed: emitted when the guess changes.
    """

    placed = Signal()
    changed = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme: Theme = LIGHT
        self.factor = 1.0
        self.open = True
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale."""
        self.theme, self.factor = theme, scale
        self.setFont(theme.font("body", scale * 1.15))
        self.updateGeometry()
        self.update()

    def close_with(self, value: float) -> None:
        """Show the run's answer and accept no further input."""
        self.open = False
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.update()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self.wants(event):
            event.accept()  # handled before commands with the same key
            return True
        return super().event(event)

    def wants(self, press: QKeyEvent) -> bool:
        """Return whether a key press is for this widget rather than for a command."""
        plain = not press.modifiers() & ~(Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier)
        return self.open and plain and press.key() in (Key.Key_Up, Key.Key_Down, Key.Key_Return, Key.Key_Enter)

    def tell(self, what: str) -> None:
        """Announce the guess to screen readers."""
        self.setAccessibleDescription(what)
        self.changed.emit()
        self.update()

    def ring(self, painter: QPainter) -> None:
        """Paint the focus frame if this widget has the keyboard focus."""
        if self.hasFocus() and self.open:
            painter.setPen(QPen(self.theme.colour("selection"), self.theme.ring_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS, RADIUS)


class Options(Input):
    """A choice among several options, listed one below the other.

    Args:
        name: the question.
        texts: the options.
        down: index of the option that the Down key chooses while none is chosen; the Up key chooses the first.

    Attributes:
        chosen: index of the chosen option; None until one is chosen.
        right: indices of the options that the run confirms; None until they are known.
    """

    def __init__(self, name: str, texts: Sequence[str], parent: QWidget | None = None, *, down: int = 0) -> None:
        super().__init__(name, parent)
        self.texts = tuple(texts)
        self._down = down
        self.chosen: int | None = None
        self.right: frozenset[int] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def guess(self) -> float | None:
        return None if self.chosen is None else float(self.chosen)

    def choose(self, place: int) -> None:
        """Choose the option with this index."""
        self.chosen = min(max(place, 0), len(self.texts) - 1)
        self.tell(
            tr("{texts}, {chosen} of {count}").format(
                texts=self.texts[self.chosen], chosen=self.chosen + 1, count=len(self.texts)
            )
        )

    def mark(self, right: frozenset[int]) -> None:
        """Mark the options that are right."""
        self.right = right
        self.close_with(math.nan)

    @property
    def line(self) -> int:
        """Height of one option in pixels."""
        return round(self.fontMetrics().height() * 1.55)

    def sizeHint(self) -> QSize:
        wide = max(self.fontMetrics().horizontalAdvance(text) for text in self.texts)
        return QSize(wide + 4 * self.line, self.line * len(self.texts) + 8)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.line * 4, self.sizeHint().height())

    def _row(self, place: int) -> QRect:
        return QRect(4, 4 + place * self.line, self.width() - 8, self.line)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self.theme
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, text in enumerate(self.texts):
            row = QRectF(self._row(place)).adjusted(1, 1, -1, -1)
            chosen, right = place == self.chosen, self.right is not None and place in self.right
            if chosen or right:
                painter.setPen(
                    QPen(
                        theme.colour("entropy" if right else "muted"),
                        theme.ring_width / 1.5,
                        Qt.PenStyle.SolidLine if right else Qt.PenStyle.DashLine,
                    )
                )
                painter.setBrush(theme.faint("text", 0.05))
                painter.drawRoundedRect(row, RADIUS, RADIUS)
            painter.setFont(theme.font("strong" if chosen or right else "body", self.factor * 1.15))
            painter.setPen(theme.colour("text") if self.right is None or right or chosen else theme.ink("muted"))
            inside = row.adjusted(self.line * 0.9, 0, -self.line * 0.2, 0)
            elided = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, round(inside.width()))
            painter.drawText(inside, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, elided)
            painter.setFont(theme.font("digits", self.factor))
            painter.setPen(theme.ink("muted"))
            number = QRectF(row.left(), row.top(), self.line * 0.9, row.height())
            painter.drawText(number, Qt.AlignmentFlag.AlignCenter, str(place + 1))
            if self.right is not None and (right or chosen):
                verdict = _who(right=right, chosen=chosen)
                painter.drawText(inside, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, verdict)
        self.ring(painter)

    def wants(self, press: QKeyEvent) -> bool:
        return super().wants(press) or (self.open and press.text() in "123456789" and bool(press.text()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.wants(event):
            super().keyPressEvent(event)
        elif event.key() in (Key.Key_Return, Key.Key_Enter):
            if self.chosen is not None:
                self.placed.emit()
        elif event.key() in (Key.Key_Up, Key.Key_Down):
            first, step = (0, -1) if event.key() == Key.Key_Up else (self._down, 1)
            self.choose(first if self.chosen is None else self.chosen + step)
        elif int(event.text()) <= len(self.texts):
            self.choose(int(event.text()) - 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = (event.position().toPoint().y() - 4) // self.line
        if self.open and 0 <= place < len(self.texts):
            self.choose(place)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.open and self.chosen is not None:
            self.placed.emit()


def _who(*, right: bool, chosen: bool) -> str:
    """Return a label that says whose answer an option is: the run's, the learner's, or both."""
    if right and chosen:
        return tr("this run and you")
    return tr("this run") if right else tr("you")
