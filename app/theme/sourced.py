"""Texts and scales whose numbers come from another place in the window, to which a key or a double-click leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.labels import Label
from app.theme.painted_text import PaintedText

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
            painter = QPainter(self)
            painter.setPen(QPen(self.palette().windowText().color(), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))


class SourcedLabel(Sourced, Label):
    """A label of this kind."""


class SourcedText(Sourced, PaintedText):
    """A painted text of this kind."""
