"""A bar strip of a check's values over the run. High bars mark where it went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.numbers import shown
from app.theme.labels import plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import tr

HIGH = 22
"""Height in pixels at 100 %."""


class CourseStrip(QWidget):
    """A bar for each step of the run. A click shows the step.

    Signals:
        step_wanted: show the step with this number, as counted by the trainer.
    """

    step_wanted = Signal(int)

    def __init__(self, course: Sequence[tuple[int, float]], began: int, parent: QWidget | None = None) -> None:
        """Initialize the strip.

        Args:
            course: the trainer's step number and the value of each measured update, in order.
            began: the trainer's number for the first step at which the run counts as faulty.
        """
        super().__init__(parent)
        self.course, self.began = [*course], began
        self._theme, self._scale = LIGHT, 1.0
        self._now: int | None = None
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs from left to right in any language
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("What was measured, over the steps"))

    def sizeHint(self) -> QSize:
        return QSize(200, round(HIGH * self._scale))

    def show_now(self, theme: Theme, scale: float, now: int | None) -> None:
        """Set the style, and mark the trainer's step ``now``."""
        if (theme, scale, now) != (self._theme, self._scale, self._now):
            if scale != self._scale:
                self.updateGeometry()
            self._theme, self._scale, self._now = theme, scale, now
            self.update()

    def place_at(self, x: float) -> int:
        """Return the index of the measurement at ``x`` pixels."""
        return min(max(int(x / max(self.width(), 1) * len(self.course)), 0), len(self.course) - 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self._theme
        wide, high = self.width() / len(self.course), float(self.height())
        painter.fillRect(self.rect(), theme.colour("surface"))
        largest = max((abs(value) for _, value in self.course), default=0.0) or 1.0
        gap = 1.0 if wide >= 4 else 0.0
        for place, (label, value) in enumerate(self.course):
            tall = max(abs(value) / largest * (high - 2), 1.0)
            colour = theme.colour("push_down") if label >= self.began else theme.colour("dead")
            painter.fillRect(QRectF(place * wide, high - tall, max(wide - gap, 1.0), tall), colour)
        now = next((n for n, (label, _) in enumerate(self.course) if label == self._now), None)
        if now is not None:
            middle = (now + 0.5) * wide
            painter.setPen(QPen(theme.colour("text"), max(2.0, theme.ring_width)))
            painter.drawLine(QPointF(middle, 0), QPointF(middle, high))
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("selection"), theme.ring_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(self.rect()).adjusted(1, 1, -1, -1))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        label, value = self.course[self.place_at(event.position().x())]
        self.setToolTip(plain_tip(tr("Step {label}: {value}").format(label=label, value=shown(value))))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.step_wanted.emit(self.course[self.place_at(event.position().x())][0])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        move = moves.get(Qt.Key(event.key()))
        if move is None:
            super().keyPressEvent(event)
            return
        labels = [label for label, _ in self.course]
        here = labels.index(self._now) if self._now in labels else (0 if move > 0 else len(labels) - 1) - move
        self.step_wanted.emit(labels[min(max(here + move, 0), len(labels) - 1)])
