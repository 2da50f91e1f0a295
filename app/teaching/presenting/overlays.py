"""Overlays of the window while presenting: a ring around the pointer, a black screen, and a large step counter."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWindow
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDockWidget,
    QGraphicsView,
    QMainWindow,
    QWidget,
)

from app.plotting.bar_chart import BarChart
from app.teaching.presenting.speaker import shown_now
from app.theme.labels import Label
from app.theme.painting import TOP_LEFT, frame, painter_of, write
from app.theme.tokens import LIGHT, RADIUS, Theme
from app.workspace.view import View
from grpo_core.text import tr

RING_RADIUS = 30
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
        side = round(2 * (RING_RADIUS + 6) * scale)
        self.resize(side, side)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in (QEvent.Type.MouseMove, QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease):
            mouse = cast(QMouseEvent, event)
            self._pressed = mouse.buttons() != Qt.MouseButton.NoButton
            self.move(mouse.position().toPoint() - self.rect().center())
            if self.isHidden():
                self.show()
            self.raise_()
            self.update()
        elif kind == QEvent.Type.Leave:
            self.hide()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = painter_of(self), self._theme
        centre, radius = QPointF(self.width() / 2, self.height() / 2), RING_RADIUS * self._scale
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


LARGE, SMALL = 1.5, 1.6
"""Factors by which the font sizes "counter" and "body" are multiplied."""
MARGIN = 12
CONTROLS = (QAbstractButton, QAbstractSlider, QAbstractSpinBox, QComboBox)
"""Classes of widgets that can be clicked or dragged."""
CONTENT = (QGraphicsView, BarChart, Label)
"""Classes of widgets with content to read."""
CORNERS = ((1.0, 1.0), (0.5, 1.0), (0.0, 1.0), (1.0, 0.0), (0.5, 0.5))
"""Possible positions, as fractions of the free space in each direction, in order of preference."""


def visible_controls(window: QWidget, but: QWidget) -> list[QRect]:
    """Return the rectangles of the visible, usable controls of ``window``, except those in ``but``."""
    controls = [part for part in window.findChildren(QWidget) if isinstance(part, CONTROLS)]
    return [
        QRect(part.mapTo(window, QPoint()), part.size())
        for part in controls
        if not part.visibleRegion().isEmpty() and part.isEnabledTo(window) and not but.isAncestorOf(part)
    ]


class StepCounter(QWidget):
    """An overlay that covers no control, and as little as possible of plots and text. It can be dragged.

    Args:
        beside: name of the widget at whose right end it is placed if that is free.
    """

    def __init__(self, window: QWidget, beside: str = "") -> None:
        super().__init__(window)
        self._beside = beside
        self._theme: Theme = LIGHT
        self._scale = 1.0
        self._lines = ("", "")
        self._grip: QPoint | None = None
        self._place: tuple[float, float] | None = None  # where it was dragged, as a fraction of the free space
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        self.setAccessibleName(tr("Step counter"))
        self.hide()

    def switch(self, on: bool) -> None:
        if on:
            self.window().installEventFilter(self)
        else:
            self.window().removeEventFilter(self)
        self.setVisible(on)
        self.settle()

    def show_view(self, view: View) -> None:
        """Show the update under the cursor, and its stage."""
        content = (shown_now(view), view.theme, view.scale)
        if content == (self._lines, self._theme, self._scale):
            return
        self._lines, self._theme, self._scale = content
        self.setAccessibleDescription(", ".join(filter(None, self._lines)))
        if self.size() != self.sizeHint():
            self.settle()
        self.update()

    def sizeHint(self) -> QSize:
        large = QFontMetrics(self._theme.font("counter", LARGE * self._scale))
        small = QFontMetrics(self._theme.font("strong", SMALL * self._scale))
        edge = round(16 * self._scale)
        # The widest text in a run with a four-digit number of updates, so that it does not jump with each update.
        usual = ("0,000", tr("Update, pass 4/4"))
        wide = max(
            *(large.horizontalAdvance(text) for text in (usual[0], self._lines[0])),
            *(small.horizontalAdvance(text) for text in (usual[1], self._lines[1])),
        )
        return QSize(wide + 2 * edge, round(large.height() * 0.95 + small.height() + edge))

    def _space(self) -> tuple[int, int]:
        outer, edge = self.window().size(), round(MARGIN * self._scale)
        return max(outer.width() - self.width() - 2 * edge, 1), max(outer.height() - self.height() - 2 * edge, 1)

    def settle(self) -> None:
        """Update size and position: where the user dragged the counter, or otherwise where it covers the least."""
        if self.isHidden():
            return
        self.resize(self.sizeHint())
        self.move(self._free_place() if self._place is None else self._at(self._place))
        self.raise_()

    def _at(self, share: tuple[float, float]) -> QPoint:
        (wide, high), edge = self._space(), round(MARGIN * self._scale)
        return QPoint(edge + round(share[0] * wide), edge + round(share[1] * high))

    def _free_place(self) -> QPoint:
        """Return the right end of the row ``beside`` if that is free, or otherwise the best corner.

        This is the first corner that covers the fewest controls and, among those, the least of plots and text.
        """
        window, edge = self.window(), round(MARGIN * self._scale)
        places = [self._at(corner) for corner in CORNERS]
        row = window.findChild(QWidget, self._beside) if self._beside else None
        if row is not None and not row.visibleRegion().isEmpty():
            box = QRect(row.mapTo(window, QPoint()), row.size())
            places.insert(0, QPoint(box.right() - self.width() - edge, box.center().y() - self.height() // 2))
        parts = [part for part in window.findChildren(QWidget) if isinstance(part, CONTENT)]
        drawn = [part.viewport() if isinstance(part, QGraphicsView) else part for part in parts]  # a plot hides itself
        seen = [part for part in drawn if not part.visibleRegion().isEmpty()]
        content = [QRect(part.mapTo(window, QPoint()), part.size()) for part in seen]
        controls = visible_controls(window, self)

        def covered(place: QPoint) -> tuple[int, int]:
            own = QRect(place, self.size())
            hidden = [own.intersected(box).size() for box in content]
            return sum(map(own.intersects, controls)), sum(size.width() * size.height() for size in hidden)

        return min(places, key=covered)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, edge = painter_of(self), self._theme, 16 * self._scale
        box, pen = QRectF(self.rect()).adjusted(1, 1, -1, -1), QPen(theme.colour("muted"), theme.ring_width / 2)
        frame(painter, box, pen, theme.colour("ground"), RADIUS * self._scale)
        inside, ink = box.adjusted(edge, edge * 0.3, -edge, -edge * 0.5), theme.colour("text")
        write(painter, inside, self._lines[0], theme.font("counter", LARGE * self._scale), ink, TOP_LEFT)
        below = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom)
        write(painter, inside, self._lines[1], theme.font("strong", SMALL * self._scale), ink, below)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._grip = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is None:
            return
        wanted = self.mapToParent(event.position().toPoint()) - self._grip
        (wide, high), edge = self._space(), round(MARGIN * self._scale)
        self._place = (min(max((wanted.x() - edge) / wide, 0.0), 1.0), min(max((wanted.y() - edge) / high, 0.0), 1.0))
        self.settle()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.settle()
        return False
