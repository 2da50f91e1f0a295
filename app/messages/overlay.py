"""Placement of the messages: over the main window, in the speaker's window, or behind a button."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Slot
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabBar, QToolBar, QToolButton, QWidget
from shiboken6 import Shiboken

from app.messages.message_bar import MessageBar
from app.theme.labels import plain_tip
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


def free_corner(space: QRect, size: QSize, taken: QRect) -> QRect:
    """Return a rectangle of ``size`` in the corner of ``space`` that overlaps least with ``taken``.

    The lower right corner is preferred. The rectangle is never larger than ``space``.
    """
    size = size.boundedTo(space.size())
    right, low = space.right() + 1 - size.width(), space.bottom() + 1 - size.height()
    corners = (QPoint(right, low), QPoint(space.left(), low), QPoint(right, space.top()), space.topLeft())

    def covered(place: QPoint) -> int:
        both = QRect(place, size).intersected(taken)
        return max(both.width(), 0) * max(both.height(), 0)

    return QRect(min(corners, key=covered), size)


class MessageOverlay(QObject):
    """Shows the messages over a corner of the main window, never over its toolbars or over the focused widget.

    Attributes:
        place: the current location.
        mark: a small button in a corner of the window with the number of messages, shown instead of the messages if not
            everybody should see them.
    """

    def __init__(self, window: QMainWindow, bar: MessageBar, scale: Callable[[], float]) -> None:
        super().__init__(window)
        self._window, self._bar, self._scale = window, bar, scale
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

    # -- place
    # -----------------------------------------------------------------------------------------------------------

    def show_in(self, place: Place) -> None:
        """Show the messages over the window or behind the mark. For ``Place.ELSEWHERE``, the caller places the bar."""
        if place is not Place.ELSEWHERE and self._bar.parentWidget() is not self._window:
            self._bar.setParent(self._window)
        self.place, self._opened = place, False
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Update the display of the messages in their location."""
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
        window, margin = self._window, round(MARGIN * self._scale())
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
        widget: QWidget = self._bar
        if self._bar.isHidden():
            widget, size = self.mark, self.mark.sizeHint()
        else:
            width = min(max(round(WIDTH * self._scale()), self._bar.minimumSizeHint().width()), space.width())
            size = QSize(width, self._bar.heightForWidth(width))
        wanted = free_corner(space, size, self._taken())
        if widget.geometry() != wanted:
            widget.setGeometry(wanted)
        self.lift()

    def _taken(self) -> QRect:
        """Return the rectangle of the focused widget in the window, empty if the focus is elsewhere."""
        focus = QApplication.focusWidget()
        if focus is None or focus.window() is not self._window or self._bar.isAncestorOf(focus) or focus is self.mark:
            return QRect()
        return QRect(focus.mapTo(self._window, QPoint()), focus.size())

    @Slot()
    def lift(self) -> None:
        """Raise the messages above all other widgets, for example above a dock that was moved."""
        widget: QWidget = self.mark if self._bar.isHidden() else self._bar
        if widget.isHidden() or widget.parentWidget() is not self._window:
            return
        children = self._window.children()
        above = children[children.index(widget) + 1 :]
        if any(isinstance(child, (QDockWidget, QTabBar)) and not child.isHidden() for child in above):
            widget.raise_()

    # -- the keyboard ------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether there are any messages."""
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

    # -- moving
    # ----------------------------------------------------------------------------------------------------------

    @Slot("QWidget*", "QWidget*")
    def _on_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        if new is not None and self.waiting and self.place is not Place.ELSEWHERE:
            self._settle()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        moves = event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest)
        if moves and self.waiting and self.place is not Place.ELSEWHERE:
            self._settle()
        return False
