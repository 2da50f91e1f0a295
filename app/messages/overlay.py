"""Placement of the messages: over the main window, in the speaker's window, or behind a button."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Slot
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QGraphicsView,
    QMainWindow,
    QMenuBar,
    QTabBar,
    QToolBar,
    QToolButton,
    QWidget,
)
from shiboken6 import Shiboken

from app.messages.message_bar import MessageBar
from app.plotting.bar_chart import BarChart
from app.theme.labels import plain_tip
from app.widgets.panel import in_window
from app.workspace.workspace import Workspace
from grpo_core.text import tr

WIDTH, MARGIN = 344, 12
"""Pixels at 100 %: width of the messages, and their distance from the edges of the window.

The width fits the right side of the usual layouts.
"""


class Place(Enum):
    """A location for messages."""

    WINDOW = "window"
    ELSEWHERE = "elsewhere"
    MARK = "mark"


def free_corner(space: QRect, size: QSize, focus: QRect, pictures: Iterable[QRect] = ()) -> QRect:
    """Return a rectangle of ``size`` in the corner of ``space`` that overlaps least with ``focus``.

    Among several such corners, it is the one that overlaps least with ``pictures``, and then the lower right one. The
    rectangle is never larger than ``space``.
    """
    size = size.boundedTo(space.size())
    right, low = space.right() + 1 - size.width(), space.bottom() + 1 - size.height()
    corners = (QPoint(right, low), QPoint(space.left(), low), QPoint(right, space.top()), space.topLeft())

    def covered(corner: QPoint, taken: QRect) -> int:
        both = QRect(corner, size).intersected(taken)
        return max(both.width(), 0) * max(both.height(), 0)

    pictures = tuple(pictures)
    return QRect(min(corners, key=lambda at: (covered(at, focus), sum(covered(at, one) for one in pictures))), size)


class MessageOverlay(QObject):
    """Shows the messages in the main window, never over its toolbars or over the focused widget.

    A single message that fits on one line is shown to the right of the menus, where it covers nothing. Any others are
    in the corner of the window where they cover least of its pictures.

    Attributes:
        mark: a small button in a corner of the window with the number of messages, shown instead of the messages if not
            everybody should see them.
    """

    def __init__(self, window: QMainWindow, bar: MessageBar, workspace: Workspace) -> None:
        super().__init__(window)
        self._window, self._bar, self._workspace = window, bar, workspace
        self._former: QWidget | None = None
        self.place = Place.WINDOW
        self._opened = False
        self.mark = QToolButton(window)
        self.mark.setObjectName("messageMark")
        self.mark.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.mark.clicked.connect(self.focus)
        self.mark.hide()
        bar.setParent(window)
        bar.changed.connect(self.refresh)
        bar.left.connect(self.leave)
        window.installEventFilter(self)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)

    # -- place ---------------------------------------------------------------------------------------------------------

    def show_in(self, place: Place) -> None:
        """Show the messages over the window or behind the mark. For ``Place.ELSEWHERE``, the caller places the bar."""
        if place is not Place.ELSEWHERE and self._bar.parentWidget() is not self._window:
            self._bar.setParent(self._window)
        self.place, self._opened = place, False
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        count = len(self._bar.lines)
        self._opened = self._opened and count > 0
        marked = self.place is Place.MARK and count > 0 and not self._opened
        self._bar.setVisible(count > 0 and not marked)
        self.mark.setText(tr("Messages: {count}").format(count=count))
        self.mark.setAccessibleName(self.mark.text())
        self.mark.setToolTip(plain_tip(tr("Show the messages (F6)")))
        self.mark.setVisible(marked)
        if self.place is not Place.ELSEWHERE and count:
            self._settle()

    @property
    def space(self) -> QRect:
        """The part of the window that messages can cover: below its toolbars and the timeline."""
        window, margin = self._window, round(MARGIN * self._workspace.scale)
        own = window.findChildren(QToolBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        bars = [bar for bar in own if bar.isVisible() and bar.window() is window]
        top = max((bar.mapTo(window, QPoint(0, bar.height())).y() for bar in bars), default=0)
        return QRect(QPoint(0, top), QPoint(window.width() - 1, window.height() - 1)).adjusted(
            margin, margin, -margin, -margin
        )

    def _settle(self) -> None:
        space = self.space
        if space.width() < 1 or space.height() < 1:
            return
        if self._bar.isHidden():
            self._place(self.mark, self.mark.sizeHint())
            return
        beside, wanted = self._beside_menus(), self._bar.one_line_width
        fits = wanted is not None and wanted <= beside.width()
        self._bar.show_on_one_line(fits)
        if wanted is not None and fits:
            beside.setLeft(beside.right() + 1 - wanted)
            self._bar.setGeometry(beside)
            self.lift()
        else:
            width = min(max(round(WIDTH * self._workspace.scale), self._bar.minimumSizeHint().width()), space.width())
            self._place(self._bar, QSize(width, self._bar.heightForWidth(width)))

    def _place(self, widget: QWidget, size: QSize) -> None:
        """Show ``widget`` in a free corner of the window."""
        widgets = self._window.findChildren(QWidget)
        pictures = (self._box(one) for one in widgets if isinstance(one, (QGraphicsView, BarChart)))  # plots and bars
        widget.setGeometry(free_corner(self.space, size, self._taken(), pictures))
        self.lift()

    def _beside_menus(self) -> QRect:
        """Return the part of the window to the right of its menus, empty where they are not in the window."""
        bar = self._window.menuBar()
        if bar.isHidden() or bar.isNativeMenuBar() or not bar.actions():
            return QRect()
        left = max(bar.actionGeometry(action).right() for action in bar.actions())
        return QRect(QPoint(left + MARGIN, 0), QPoint(bar.width() - MARGIN, bar.height() - 1))

    def _box(self, widget: QWidget) -> QRect:
        """Return the rectangle of a widget in the window, empty if it is not visible there."""
        if widget.window() is not self._window or not in_window(widget):
            return QRect()
        return QRect(widget.mapTo(self._window, QPoint()), widget.size())

    def _taken(self) -> QRect:
        """Return the rectangle of the focused widget in the window, empty if the focus is elsewhere."""
        focus = QApplication.focusWidget()
        if focus is None or self._bar.isAncestorOf(focus) or focus is self.mark:
            return QRect()
        return self._box(focus)

    @Slot()
    def lift(self) -> None:
        """Raise the messages above all other widgets, for example above a dock that was moved."""
        widget: QWidget = self.mark if self._bar.isHidden() else self._bar
        if widget.isHidden() or widget.parentWidget() is not self._window:
            return
        children = self._window.children()
        above = children[children.index(widget) + 1 :]
        if any(isinstance(child, (QDockWidget, QTabBar, QMenuBar)) and not child.isHidden() for child in above):
            widget.raise_()

    # -- the keyboard ------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        return bool(self._bar.lines)

    @Slot()
    def focus(self) -> None:
        """Move the keyboard focus to the newest message or, if it is already there, back to where it was."""
        focus = QApplication.focusWidget()
        if focus is not None and self._bar.isAncestorOf(focus):
            self.leave()
        elif self.waiting:
            self._former = focus if focus is not self.mark else None
            self._opened = True
            self.refresh()
            self._bar.window().activateWindow()
            self._bar.focus_newest()

    @Slot()
    def leave(self) -> None:
        """Move the keyboard focus back to where it was before, and hide messages behind the mark again."""
        former, self._former = self._former, None
        self._opened = False
        if former is not None and Shiboken.isValid(former) and former.isVisible():
            former.window().activateWindow()
            former.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            focus = QApplication.focusWidget()
            if focus is not None and self._bar.isAncestorOf(focus):
                focus.clearFocus()
        self.refresh()

    # -- moving --------------------------------------------------------------------------------------------------------

    @Slot("QWidget*", "QWidget*")
    def _on_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        if new is not None and self.waiting and self.place is not Place.ELSEWHERE:
            self._settle()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        moves = event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest)
        if moves and self.waiting and self.place is not Place.ELSEWHERE:
            self._settle()
        return False
