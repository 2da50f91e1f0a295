"""The update and the stage, so large that the back row reads them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.presenting.words import shown_now
from app.theme.tokens import LIGHT, RADIUS, Theme
from app.workspace.view import View
from grpo_core.text import tr

LARGE, SMALL = 1.5, 1.6
"""Times the type scale's "counter" and "body"."""
MARGIN = 12


class StepCounter(QWidget):
    """Lies over the window, at its lower left, and can be dragged anywhere."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._theme: Theme = LIGHT
        self._scale = 1.0
        self._lines = ("", "")
        self._grip: QPoint | None = None
        self._place = (0.0, 1.0)  # of the room that is left beside it
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        self.setAccessibleName(tr("Step counter"))
        self.hide()

    def switch(self, on: bool) -> None:
        """Show it, or take it away."""
        if on:
            self.window().installEventFilter(self)
        else:
            self.window().removeEventFilter(self)
        self.setVisible(on)
        if on:
            self._settle()

    def show_view(self, view: View) -> None:
        """Say where the eye is."""
        content = (shown_now(view), view.theme, view.scale)
        if content == (self._lines, self._theme, self._scale):
            return
        self._lines, self._theme, self._scale = content
        self.setAccessibleDescription(", ".join(filter(None, self._lines)))
        self._settle()
        self.update()

    def sizeHint(self) -> QSize:
        large, small = self._fonts()
        edge = round(16 * self._scale)
        # The widest that it becomes in a run of four digits: it must not jump with each update.
        usual = ("0,000", tr("Update, pass 4/4"))
        wide = max(
            *(large.horizontalAdvance(text) for text in (usual[0], self._lines[0])),
            *(small.horizontalAdvance(text) for text in (usual[1], self._lines[1])),
        )
        return QSize(wide + 2 * edge, round(large.height() * 0.95 + small.height() + edge))

    def _fonts(self) -> tuple[QFontMetrics, QFontMetrics]:
        large = self._theme.font("counter", LARGE * self._scale)
        small = self._theme.font("strong", SMALL * self._scale)
        return QFontMetrics(large), QFontMetrics(small)

    def _room(self) -> tuple[int, int]:
        outer, edge = self.window().size(), round(MARGIN * self._scale)
        return max(outer.width() - self.width() - 2 * edge, 1), max(outer.height() - self.height() - 2 * edge, 1)

    def _settle(self) -> None:
        """Keep the place: that share of the room which is left beside it."""
        self.resize(self.sizeHint())
        (wide, high), edge = self._room(), round(MARGIN * self._scale)
        self.move(edge + round(self._place[0] * wide), edge + round(self._place[1] * high))
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, edge = QPainter(self), self._theme, 16 * self._scale
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.colour("muted"), theme.ring_width / 2))
        painter.setBrush(theme.colour("ground"))
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(box, RADIUS * self._scale, RADIUS * self._scale)
        painter.setPen(theme.colour("text"))
        inside = box.adjusted(edge, edge * 0.3, -edge, -edge * 0.5)
        painter.setFont(theme.font("counter", LARGE * self._scale))
        painter.drawText(inside, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, self._lines[0])
        painter.setFont(theme.font("strong", SMALL * self._scale))
        painter.drawText(inside, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, self._lines[1])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._grip = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is None:
            return
        wanted = self.mapToParent(event.position().toPoint()) - self._grip
        (wide, high), edge = self._room(), round(MARGIN * self._scale)
        self._place = (min(max((wanted.x() - edge) / wide, 0.0), 1.0), min(max((wanted.y() - edge) / high, 0.0), 1.0))
        self._settle()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._settle()
        return False
