"""Overlays of the window while presenting: a ring around the pointer, and a black screen."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWindow
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QWidget

from app.theme.tokens import LIGHT, Theme
from grpo_core.text import tr

RADIUS = 30
"""Radius in pixels at 100 %."""


class PointerRing(QWidget):
    """A ring that follows the pointer over its window, thicker while a button is pressed. Clicks pass through it."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._watched: QWindow | None = None
        self._theme, self._scale, self._pressed = LIGHT, 1.0, False
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(tr("Ring around the pointer"))
        self.hide()

    @property
    def on(self) -> bool:
        return self._watched is not None

    def switch(self, on: bool) -> None:
        if self._watched is not None:
            self._watched.removeEventFilter(self)
            self._watched = None
        self.hide()
        if on:
            # The native window sees every move; a widget would need mouse tracking for that.
            self._watched = self.window().windowHandle()
            self._watched.installEventFilter(self)

    def set_look(self, theme: Theme, scale: float) -> None:
        self._theme, self._scale = theme, scale
        side = round(2 * (RADIUS + 6) * scale)
        self.resize(side, side)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in (QEvent.Type.MouseMove, QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease):
            mouse = cast(QMouseEvent, event)
            self._pressed = mouse.buttons() != Qt.MouseButton.NoButton
            self._go_to(mouse.position().toPoint())
        elif kind == QEvent.Type.Leave:
            self.hide()
        return False

    def _go_to(self, place: QPoint) -> None:
        self.move(place - self.rect().center())
        if self.isHidden():
            self.show()
        self.raise_()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre, radius = QPointF(self.width() / 2, self.height() / 2), RADIUS * self._scale
        width = (6.0 if self._pressed else 3.5) * self._scale
        # a halo, so that it contrasts with any background
        for meaning, wide in (("ground", width + 3 * self._scale), ("text", width)):
            painter.setPen(QPen(theme.colour(meaning), wide))
            painter.drawEllipse(centre, radius, radius)


class Blank(QWidget):
    """Covers a window. While it is visible, it has the keyboard focus, and no shortcut works."""

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
