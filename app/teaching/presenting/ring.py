"""A ring around the mouse pointer that is visible from the back row."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QWindow
from PySide6.QtWidgets import QWidget

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
        """Whether the ring follows the pointer."""
        return self._watched is not None

    def switch(self, on: bool) -> None:
        """Set whether the ring follows the pointer."""
        if self._watched is not None:
            self._watched.removeEventFilter(self)
            self._watched = None
        self.hide()
        if on:
            # The native window sees every move; a widget would need mouse tracking for that.
            self._watched = self.window().windowHandle()
            self._watched.installEventFilter(self)

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale."""
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
