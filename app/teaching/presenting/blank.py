"""A black screen that draws attention to the speaker. Any key, or a click, brings the picture back."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QWidget

from grpo_core.text import tr


class Blank(QWidget):
    """Covers a window. While it is visible, it has the keyboard focus, and no shortcut works.

    Signals:
        lifted: emitted when the picture is visible again.
    """

    lifted = Signal()

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._before: QWidget | None = None
        self._floating: list[QDockWidget] = []
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Blank screen"))
        self.setAccessibleDescription(tr("Any key brings the picture back."))
        self.setCursor(Qt.CursorShape.BlankCursor)
        self.hide()

    def drop(self) -> None:
        """Cover the window, and all docks that float next to it."""
        self._before = QApplication.focusWidget()
        self._floating = [
            dock for dock in self._window.findChildren(QDockWidget) if dock.isFloating() and dock.isVisible()
        ]
        for dock in self._floating:
            dock.hide()
        self._window.installEventFilter(self)
        self.setGeometry(self._window.rect())
        self.show()
        self.raise_()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def lift(self) -> bool:
        """Uncover the window. Return False if it is not covered."""
        if self.isHidden():
            return False
        self._window.removeEventFilter(self)
        self.hide()
        for dock in self._floating:
            dock.show()
        if self._before is not None:
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)
        self._before, self._floating = None, []
        self.lifted.emit()
        return True

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # keys must arrive here and nowhere else
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not event.isAutoRepeat():  # the key that blanked the screen may still be pressed
            self.lift()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.lift()

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), Qt.GlobalColor.black)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._window.rect())
        return False
