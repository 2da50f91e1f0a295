"""A large button that opens a door: its picture, its title, and what is behind it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.resources import icon
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, RADIUS, Theme
from app.widgets.door import Door

PAD, PICTURE = 16, 48
"""Pixels at 100 %: padding, and width and height of the picture."""
LARGE = 1.35
"""Factor by which the font size of the title is multiplied."""
WRAP = int(Qt.TextFlag.TextWordWrap) | int(Qt.AlignmentFlag.AlignLeft) | int(Qt.AlignmentFlag.AlignTop)


class DoorButton(QAbstractButton):
    """The button of one door. Enter and Space open it, and the left and right arrow keys move to its neighbours."""

    def __init__(self, door: Door, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.door = door
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setText(door.title)
        self.setAccessibleName(door.title)
        self.setAccessibleDescription(door.sentence)
        self.setToolTip(plain_tip(door.sentence))
        self._theme, self._scale = LIGHT, 1.0

    def set_look(self, theme: Theme, scale: float) -> None:
        self._theme, self._scale = theme, scale
        self._fit()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(110 * self._scale), self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        pad, theme, scale = PAD * self._scale, self._theme, self._scale
        title = QFontMetrics(theme.font("strong", LARGE * scale)).height()
        wide = round(self.width() - 2 * pad)
        text = QFontMetrics(theme.font("body", scale)).boundingRect(0, 0, wide, 10_000, WRAP, self.door.sentence)
        self.setMinimumHeight(round(3 * pad + PICTURE * scale + title + text.height()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Right | Qt.Key.Key_Down:
                self.focusNextChild()
            case Qt.Key.Key_Left | Qt.Key.Key_Up:
                self.focusPreviousChild()
            case _:
                super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, scale = QPainter(self), self._theme, self._scale
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        marked = self.hasFocus() or self.underMouse()
        painter.setPen(QPen(theme.colour("selection" if marked else "border"), theme.ring_width if marked else 1.0))
        painter.setBrush(theme.colour("surface"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS * scale, RADIUS * scale)
        pad, side = PAD * scale, round(PICTURE * scale)
        box = QRectF(self.rect()).adjusted(pad, pad, -pad, -pad)
        picture = icon(self.door.icon, theme.colour("push_up").name()).pixmap(
            QSize(side, side), self.devicePixelRatioF()
        )
        painter.drawPixmap(box.topLeft(), picture)
        box.setTop(box.top() + side + pad / 2)
        painter.setPen(theme.ink("text"))
        painter.setFont(theme.font("strong", LARGE * scale))
        painter.drawText(box, WRAP, self.door.title)
        box.setTop(box.top() + painter.fontMetrics().height() + pad / 4)
        painter.setPen(theme.ink("muted"))
        painter.setFont(theme.font("body", scale))
        painter.drawText(box, WRAP, self.door.sentence)
