"""Keys that the focused widget needs for itself.

Before Qt runs a shortcut, it sends a ``ShortcutOverride`` event to the focused widget. If the widget accepts it, the
key reaches the widget as an ordinary key press. Text fields accept such events; buttons, combo boxes, sliders and
tables do not, so a window-wide Space shortcut would take Space away from a focused button. The filter in this module
accepts the events in their place.

The filter is installed only on the focused widget. On the application, it would receive every event of the program.
"""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QKeySequenceEdit,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
    QTableView,
    QTextEdit,
    QWidget,
)

Key = Qt.Key
MOVING = frozenset(
    (Key.Key_Left, Key.Key_Right, Key.Key_Up, Key.Key_Down, Key.Key_Home, Key.Key_End, Key.Key_PageUp, Key.Key_PageDown)
)
"""Keys that move the cursor inside a widget."""
_COMMANDING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier


def needs_key(widget: QWidget, key: int, modifiers: Qt.KeyboardModifier, text: str) -> bool:
    """Return whether ``widget`` uses a key itself. Keys with Ctrl, Alt or Meta belong to the program.

    In a table of numbers, letters run commands, because E explains the number under the cursor. In lists and combo
    boxes, letters find an entry. A slider has no use for Space.
    """
    if modifiers & _COMMANDING:
        return False
    typed = key == Key.Key_Space or (bool(text) and text.isprintable())
    if isinstance(widget, (QTextEdit, QPlainTextEdit)):
        return key in MOVING or (typed and not widget.isReadOnly())
    if isinstance(widget, QTableView):
        return key == Key.Key_Space or key in MOVING
    if isinstance(widget, (QLineEdit, QAbstractSpinBox, QKeySequenceEdit, QComboBox, QAbstractItemView)):
        return typed or key in MOVING
    if isinstance(widget, QAbstractButton):
        return key == Key.Key_Space
    if isinstance(widget, (QAbstractSlider, QTabBar)):
        return key in MOVING
    if isinstance(widget, QAbstractScrollArea):
        return key in (Key.Key_PageUp, Key.Key_PageDown, Key.Key_Up, Key.Key_Down)
    return False


REMOTE = frozenset((Key.Key_PageUp, Key.Key_PageDown))
"""Keys that the buttons of a remote control send."""


_READING = (QAbstractItemView, QPlainTextEdit, QTextEdit)


class FocusKeys(QObject):
    """Reserves the keys that the focused widget needs for that widget.

    Attributes:
        presenting: whether the keys of a remote control belong to the program, whichever widget has the focus.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.presenting = False
        application = cast(QApplication, QApplication.instance())
        application.focusChanged.connect(self._moved)
        self._moved(None, application.focusWidget())

    @Slot("QWidget*", "QWidget*")
    def _moved(self, old: QWidget | None, new: QWidget | None) -> None:
        if old is not None:
            old.removeEventFilter(self)
        if new is not None:
            new.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(watched, QWidget):
            press = cast(QKeyEvent, event)
            scrolling = isinstance(watched, QAbstractScrollArea) and not isinstance(watched, _READING)
            if self.presenting and (press.key() in REMOTE or (scrolling and press.key() in MOVING)):
                event.ignore()
                return True  # even past widgets that would use the key themselves
            if needs_key(watched, press.key(), press.modifiers(), press.text()):
                event.accept()
                return True
        return False
