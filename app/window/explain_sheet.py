"""A sheet over the window with a beak that points at the explained number. It never covers the number itself."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from app.boxes import across, down
from app.theme.labels import Label, plain_tip
from app.theme.tokens import RADIUS, Theme
from app.window.docks import TitleButton
from grpo_core.text import tr

WIDTH, LEAST = 430, 150
"""Width at 100 % scale, and the minimum height at which a position is acceptable."""
BEAK = 8
"""Length of the beak at 100 % scale, which is also the distance of the sheet from the number."""


def placed(space: QRect, anchor: QRect, size: QSize, gap: int, least: int) -> QRect:
    """Return the rectangle for a sheet of ``size`` in ``space``: below, above or next to ``anchor``, never over it.

    If it does not fit anywhere in full, its height is reduced. A position with a height below ``least`` is rejected.
    """
    width = min(size.width(), space.width())
    left = min(max(anchor.center().x() - width // 2, space.left()), space.right() + 1 - width)
    below = QRect(QPoint(left, anchor.bottom() + 1 + gap), QPoint(left + width - 1, space.bottom()))
    above = QRect(QPoint(left, space.top()), QPoint(left + width - 1, anchor.top() - 1 - gap))
    if below.height() >= size.height():
        return QRect(below.topLeft(), QSize(width, size.height()))
    if above.height() >= size.height():
        return QRect(left, above.bottom() + 1 - size.height(), width, size.height())
    height = min(size.height(), space.height())
    top = min(max(anchor.center().y() - height // 2, space.top()), space.bottom() + 1 - height)
    if space.right() - anchor.right() - gap >= width:
        return QRect(anchor.right() + 1 + gap, top, width, height)
    if anchor.left() - gap - space.left() >= width:
        return QRect(anchor.left() - gap - width, top, width, height)
    if max(below.height(), above.height()) < least:  # the number fills the window
        return QRect(left, top, width, height)
    return below if below.height() >= above.height() else above


class ExplainSheet(QFrame):
    """A sheet that contains the Explain panel while it is not pinned.

    Signals:
        left: emitted to close the sheet and return the keyboard focus.
        pinned: emitted to keep the panel as a dock.
    """

    left = Signal()
    pinned = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setObjectName("sheet")
        self.setAccessibleName(tr("Explanation of the chosen number"))
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._theme: Theme | None = None
        self._scale = 1.0
        self._anchor = QRect()
        self.pin = QPushButton(tr("Keep as a panel"))
        self.pin.setProperty("flat", True)
        self.pin.setToolTip(plain_tip(tr("Shift+E: keep it as a panel next to the others.")))
        self.pin.clicked.connect(self.pinned)
        close = TitleButton(tr("Close (Esc)"))
        close.clicked.connect(self.left)
        top = across((Label(tr("Explain"), name="section"), 1), self.pin, close, margins=(12, 4, 6, 0))
        self._column = down(top, on=self, spacing=0)
        self.hide()

    def take(self, panel: QWidget) -> None:
        self._column.addWidget(panel, 1)
        panel.show()

    def stand_at(self, anchor: QRect, space: QRect, height: int, theme: Theme, scale: float) -> None:
        """Move to ``anchor`` within ``space``, both in the window's coordinates, leaving ``height`` for the panel."""
        gap = round(BEAK * scale)
        self._column.setContentsMargins(gap + 2, gap + 2, gap + 2, gap + 2)  # space for the outline
        around = 2 * gap + 4 + self.pin.sizeHint().height() + 4
        size = QSize(round(WIDTH * scale), height + around)
        wanted = placed(space, anchor, size, 0, round(LEAST * scale))
        if (wanted, anchor, theme, scale) == (self.geometry(), self._anchor, self._theme, self._scale):
            return
        self._anchor, self._theme, self._scale = anchor, theme, scale
        self.setGeometry(wanted)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.colour("text"), self._theme.ring_width * 0.7))
        painter.setBrush(self._theme.colour("ground"))
        painter.drawPath(self._outline())

    def _outline(self) -> QPainterPath:
        """Return the outline of a rounded rectangle with a beak that points to the number."""
        beak, radius = BEAK * self._scale, RADIUS * self._scale
        inner = QRectF(self.rect()).adjusted(beak, beak, -beak, -beak)
        path = QPainterPath()
        path.addRoundedRect(inner, radius, radius)
        at = QPointF(self._anchor.center() - self.pos())
        x = min(max(at.x(), inner.left() + radius + beak), inner.right() - radius - beak)
        y = min(max(at.y(), inner.top() + radius + beak), inner.bottom() - radius - beak)
        side = self._anchor
        if side.bottom() < self.y() + beak:
            tip, foot = QPointF(x, 0), QPointF(beak, 0)
            base = QPointF(x, inner.top())
        elif side.top() > self.y() + self.height() - beak:
            tip, foot = QPointF(x, self.height()), QPointF(beak, 0)
            base = QPointF(x, inner.bottom())
        elif side.right() < self.x() + beak:
            tip, foot = QPointF(0, y), QPointF(0, beak)
            base = QPointF(inner.left(), y)
        elif side.left() > self.x() + self.width() - beak:
            tip, foot = QPointF(self.width(), y), QPointF(0, beak)
            base = QPointF(inner.right(), y)
        else:
            return path
        pointed = QPainterPath()
        pointed.addPolygon(QPolygonF([base - foot, tip, base + foot]))
        pointed.closeSubpath()
        return path.united(pointed)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)
