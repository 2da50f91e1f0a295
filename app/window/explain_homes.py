"""The two places for the Explain panel: a sheet at the explained number or, when pinned, a dock.

Pinned means that its dock is shown, so the panel is pinned in every layout with that dock.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QCursor,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPolygonF,
    QShortcut,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QDockWidget,
    QFrame,
    QMainWindow,
    QPushButton,
    QTabBar,
    QWidget,
)
from shiboken6 import Shiboken

from app.boxes import across, down
from app.messages.overlay import MessageOverlay
from app.panels.explain import ExplainPanel
from app.theme.labels import Label, plain_tip
from app.theme.painting import painter_of
from app.theme.tokens import RADIUS, Theme
from app.widgets.panel import in_window
from app.window.docks import Dock, SavedDocks, TitleButton
from app.workspace.workspace import Workspace
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
    """

    left = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setObjectName("sheet")
        self.setAccessibleName(tr("Explanation of the chosen number"))
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._theme: Theme | None = None
        self._scale = 1.0
        self._anchor = QRect()
        self.pin = QPushButton(tr("Keep as a panel"), flat=True)
        self.pin.setToolTip(plain_tip(tr("Shift+E: keep it as a panel next to the others.")))
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
        painter = painter_of(self)
        painter.setPen(QPen(self._theme.colour("text"), self._theme.ring_width * 0.7))
        painter.setBrush(self._theme.colour("ground"))
        painter.drawPath(self._outline())

    def _outline(self) -> QPainterPath:
        """Return the outline of a rounded rectangle with a beak that points to the number."""
        beak, radius = BEAK * self._scale, RADIUS * self._scale
        inner = QRectF(self.rect()).adjusted(beak, beak, -beak, -beak)
        path = QPainterPath()
        path.addRoundedRect(inner, radius, radius)
        side = self._anchor.translated(-self.pos())
        x = min(max(side.center().x(), inner.left() + radius + beak), inner.right() - radius - beak)
        y = min(max(side.center().y(), inner.top() + radius + beak), inner.bottom() - radius - beak)
        sideways, upright = QPointF(beak, 0), QPointF(0, beak)
        if side.bottom() < beak:
            tip, base, foot = QPointF(x, 0), QPointF(x, inner.top()), sideways
        elif side.top() > self.height() - beak:
            tip, base, foot = QPointF(x, self.height()), QPointF(x, inner.bottom()), sideways
        elif side.right() < beak:
            tip, base, foot = QPointF(0, y), QPointF(inner.left(), y), upright
        elif side.left() > self.width() - beak:
            tip, base, foot = QPointF(self.width(), y), QPointF(inner.right(), y), upright
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


SMALL = 160
"""Maximum height at 100 % scale of a widget whose entire area is taken as the position of the number that it
explains.
"""


def number_box(widget: QWidget, scale: float) -> QRect:
    """Return the rectangle of the number that ``widget`` explains, in the widget's coordinates.

    A widget with many numbers provides the rectangle as ``explained_box``. In a table, the number is in the current
    cell. A small widget is the number itself. In any other widget, the number is where the mouse button is pressed, or
    at the centre.
    """
    box: Callable[[], QRect] | None = getattr(widget, "explained_box", None)
    if box is not None:
        return box()
    if isinstance(widget, QAbstractItemView):
        cell = widget.visualRect(widget.currentIndex())
        return QRect(widget.viewport().mapTo(widget, cell.topLeft()), cell.size())
    if widget.height() <= SMALL * scale:
        return widget.rect()
    pressed = bool(QGuiApplication.mouseButtons())
    at = widget.mapFromGlobal(QCursor.pos()) if pressed else widget.rect().center()
    near = QRect(at - QPoint(8, 8), at + QPoint(8, 8)).intersected(widget.rect())
    return widget.rect() if near.isEmpty() else near


class ExplainHomes(QObject):
    """The two places for the Explain panel, which is shown either in its dock or in the sheet.

    Attributes:
        sheet: the sheet; hidden while the panel is in its dock. It covers what messages could cover.
    """

    def __init__(
        self,
        window: QMainWindow,
        workspace: Workspace,
        dock: Dock,
        panel: ExplainPanel,
        saved_docks: SavedDocks,
        overlay: MessageOverlay,
    ) -> None:
        super().__init__(window)
        self._window, self._workspace, self._dock, self._panel = window, workspace, dock, panel
        self._saved_docks, self._overlay = saved_docks, overlay
        self._former: QWidget | None = None
        self._anchor: QWidget | None = None
        self._box = QRect()
        self.sheet = ExplainSheet(window)
        self.sheet.left.connect(self.close)
        self.sheet.pin.clicked.connect(self.pin)
        self._escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), window)
        self._escape.activated.connect(self.close)
        self._escape.setEnabled(False)
        self._dock.visibilityChanged.connect(self._on_dock)
        workspace.frame.connect(self.follow)
        window.installEventFilter(self)

    @property
    def is_pinned(self) -> bool:
        """Whether the panel is shown as a dock, even if behind another tab."""
        return not self._dock.isHidden()

    @property
    def is_open(self) -> bool:
        return not self.sheet.isHidden()

    @Slot()
    def show(self) -> None:
        """Show an explanation that was requested: bring the dock to the front, or open the sheet at the number.

        During a lesson or when presenting, the dock is shown next to the lesson or the picture.
        """
        if self.is_pinned or self._saved_docks.lent:
            self._show_dock()
            return
        focus = QApplication.focusWidget()
        inside = focus is not None and self.sheet.isAncestorOf(focus)
        if not inside:  # inputs of the explanation are explained at the same position
            self._former = self._anchor = focus if focus is not None and focus.window() is self._window else None
            self._box = QRect()
        if not self.is_open:
            self._dock.release()
            self.sheet.take(self._panel)
            self.sheet.show()
            self._escape.setEnabled(True)
        self._stand()
        self._panel.redraw()
        self._stand()
        self.sheet.raise_()
        if not inside:
            self._panel.focus_inputs()

    def _show_dock(self) -> None:
        self.close()
        self._dock.show()
        self._dock.raise_()

    @Slot()
    def close(self) -> None:
        """Close the sheet. The panel returns to its dock, and the keyboard focus returns to its previous widget."""
        if not self.is_open:
            return
        focus = QApplication.focusWidget()
        inside = focus is None or self.sheet.isAncestorOf(focus)
        self._escape.setEnabled(False)
        self.sheet.hide()
        self._dock.hold(self._panel)
        former, self._former, self._anchor = self._former, None, None
        if inside and former is not None and Shiboken.isValid(former) and former.isVisible():
            former.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def pin(self) -> None:
        """Toggle pinning: keep the panel as a dock, or close the dock so that the next number opens a sheet."""
        if self.is_pinned:
            self._dock.hide()
        else:
            self._show_dock()

    @Slot()
    def follow(self) -> None:
        """Move the sheet, because the number may have moved or another number of its kind may have been selected."""
        if self.is_open:
            self._stand()
            children = self._window.children()
            above = children[children.index(self.sheet) + 1 :]
            if any(isinstance(child, (QDockWidget, QTabBar)) and not child.isHidden() for child in above):
                self.sheet.raise_()  # the dock was moved to another place

    def _stand(self) -> None:
        window, workspace, anchor = self._window, self._workspace, self._anchor
        if anchor is not None and Shiboken.isValid(anchor) and in_window(anchor):  # not behind another tab
            box = number_box(anchor, workspace.scale)
            if hasattr(anchor, "explained_box") or isinstance(anchor, QAbstractItemView) or self._box.isNull():
                self._box = QRect(anchor.mapTo(window, box.topLeft()), box.size())
        if anchor is None or self._box.isNull():
            centre = window.rect().center()
            self._box = QRect(centre, centre)
        space = self._overlay.space
        height = min(self._panel.content_height, round(space.height() * 0.7))
        self.sheet.stand_at(self._box, space, height, workspace.theme, workspace.scale)

    @Slot(bool)
    def _on_dock(self, visible: bool) -> None:
        """Move the panel to its dock after the dock was shown by other means."""
        if visible and self.is_open:
            self.close()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.is_open:
            self._stand()
        return False
