"""A cover over a part of a picture that would reveal an answer. The part keeps its space in the layout."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.tokens import LIGHT, RADIUS, Theme
from grpo_core.text import tr

NOW, LATER = tr("Hidden until the question is answered"), tr("Hidden until a later question is answered")
"""Words on a cover, by the question that lifts it."""
LAID_OUT = (QEvent.Type.Resize, QEvent.Type.LayoutRequest)


class Cover(QWidget):
    """A cover that hides a widget, both visually and from screen readers."""

    def __init__(self, target: QWidget) -> None:
        super().__init__(target.parentWidget())
        self.target = target
        self._theme, self._scale = LIGHT, 1.0
        self._shown_before = False
        self.hide()
        self._parent = target.parentWidget()
        if self._parent is not None:  # a hidden widget is laid out, but gets no event about it
            self._parent.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the target whenever its parent lays it out.

        Qt has applied the layout before it calls event filters.
        """
        if watched is self._parent and event.type() in LAID_OUT and not self.isHidden():
            self.setGeometry(self.target.geometry())
        return super().eventFilter(watched, event)

    def put(self, theme: Theme, scale: float, words: str = NOW) -> None:
        """Cover the target with ``words``, or update the cover if it is already there."""
        self._theme, self._scale = theme, scale
        self.setAccessibleName(words)
        if not self.target.isHidden():
            self._retain(True)
            self._shown_before = True
            self.target.hide()
        self.setGeometry(self.target.geometry())
        self.setVisible(self._shown_before)
        self.raise_()
        self.update()

    def lift(self) -> None:
        if self._shown_before:
            self._shown_before = False
            self._retain(False)
            self.target.show()
        self.hide()

    def _retain(self, on: bool) -> None:
        policy = self.target.sizePolicy()
        policy.setRetainSizeWhenHidden(on)
        self.target.setSizePolicy(policy)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.colour("border"), max(self._scale, 1.0), Qt.PenStyle.DashLine))
        painter.setBrush(theme.colour("surface"))
        radius = RADIUS * self._scale
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), radius, radius)
        painter.setPen(theme.ink("muted"))
        painter.setFont(theme.font("body", self._scale))
        words, metrics = self.accessibleName(), painter.fontMetrics()
        space = self.rect().adjusted(6, 0, -6, 0)
        wrapped = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
        if space.contains(metrics.boundingRect(space, wrapped, words)):
            painter.drawText(QRectF(space), wrapped, words)
