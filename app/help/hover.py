"""Definitions as tooltips, shown when the pointer is over a widget or, for keyboard users, when it has the focus."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Slot
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.clock import Timer
from app.help.glossary import tooltip_html, tooltip_text
from app.theme.labels import rich_tip

DELAY_MS = 700
"""Milliseconds that the focus must stay on a widget before its tooltip is shown."""
_BY_KEYBOARD = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason)


def explain_on_hover(widget: QWidget, term: str, note: str = "") -> None:
    """Give ``widget`` the glossary's definition of ``term``, followed by ``note`` (for example the range of a setting).

    This sets the tooltip, What's This and the accessible description, and also shows the tooltip when the widget is
    reached with the keyboard. It can be called again with another term.
    """
    text = tooltip_html(term, note)
    widget.setToolTip(rich_tip(text))
    widget.setWhatsThis(text)
    widget.setAccessibleDescription(tooltip_text(term, note))
    if widget.findChild(FocusTip, options=Qt.FindChildOption.FindDirectChildrenOnly) is None:
        FocusTip(widget)


class FocusTip(QObject):
    """Shows a widget's tooltip after the keyboard focus has stayed on the widget for a moment.

    After a mouse press, no tooltip appears until the pointer has left, because a user who drags watches the effect.
    """

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._pressed = False
        self._timer = Timer(self, self.show_tip, DELAY_MS)
        widget.installEventFilter(self)

    @property
    def waiting(self) -> bool:
        """Whether the widget has the focus and its tooltip is about to be shown."""
        return self._timer.isActive()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.FocusIn and isinstance(event, QFocusEvent) and event.reason() in _BY_KEYBOARD:
            self._timer.start()
        elif kind in (QEvent.Type.FocusOut, QEvent.Type.KeyPress, QEvent.Type.Hide):
            self._timer.stop()  # Qt itself hides a visible tooltip
        if kind in (QEvent.Type.MouseButtonPress, QEvent.Type.Leave):
            self._pressed = kind == QEvent.Type.MouseButtonPress
        return kind == QEvent.Type.ToolTip and self._pressed

    @Slot()
    def show_tip(self) -> None:
        if self._widget.isVisible():
            below = self._widget.mapToGlobal(QPoint(0, self._widget.height()))
            QToolTip.showText(below, rich_tip(self._widget.toolTip()), self._widget)
