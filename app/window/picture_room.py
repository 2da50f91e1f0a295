"""A comparison in the middle gets most of the height that it shares with the panels below, while it is in front."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QMainWindow, QTabBar

from app.widgets.panel import in_window
from app.window.docks import Dock

SHARE = 0.72
"""Of the height of both."""


class PictureRoom(QObject):
    """Watches which panels are in front, and moves the border below a large one.

    When another panel takes its place the border goes back to where it was, unless those below have got more.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        super().__init__(window)
        self._window, self._docks = window, docks
        self._large: Dock | None = None
        self._below: Dock | None = None
        self._before = 0
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._share)
        for dock in docks.values():
            dock.visibilityChanged.connect(self._on_change)

    @Slot()
    def forget(self) -> None:
        """The docks have been arranged anew: there is no border to go back to."""
        self._large = self._below = None
        self._soon.start()

    @Slot(bool)
    def _on_change(self, visible: bool) -> None:
        self._soon.start()

    @Slot()
    def _share(self) -> None:
        """Once the docks have their places: more room for a large panel that has come to the front, or less."""
        large = next((dock for dock in self._docks.values() if self._is_large(dock)), None)
        below = None if large is None else self._dock_below(large)
        if self._large is not None and self._below is not None and large is None and in_window(self._below):
            front = self._dock_above(self._below)
            if front is not None and self._below.height() < self._before:
                self._resize(front, self._below, self._before)
            self._large = self._below = None
        elif self._large is None and large is not None and below is not None and not self._is_large(below):
            self._large, self._below, self._before = large, below, below.height()
            wanted = round((large.height() + below.height()) * (1 - SHARE))
            if wanted < self._before:
                self._resize(large, below, wanted)

    def _resize(self, above: Dock, below: Dock, height: int) -> None:
        """``below`` as high as this, the low rows as high as they ask for, ``above`` with the rest.

        The heights add up to what the docks have: Qt would spread a remainder over all of them, so that every change
        of panels would let the rows grow.
        """
        low = [dock for dock in self._docks.values() if dock.row_height and self._is_docked(dock)]
        rows = [dock.row_height for dock in low]
        tabs = [self._tab_height(above), self._tab_height(below)]
        rest = sum(dock.height() for dock in (*low, above, below)) - sum(rows) - height
        heights = [*rows, rest + tabs[0], height + tabs[1]]
        self._window.resizeDocks([*low, above, below], heights, Qt.Orientation.Vertical)

    def _tab_height(self, dock: Dock) -> int:
        """Pixels that the tabs over a dock take. 0 for one that stands alone."""
        if not self._window.tabifiedDockWidgets(dock):
            return 0
        bars = self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        tops = [bar.y() for bar in bars if bar.isVisible() and bar.x() == dock.x() and bar.y() < dock.y()]
        return dock.y() - max(tops, default=dock.y())

    def _is_large(self, dock: Dock) -> bool:
        return dock.panel is not None and dock.panel.large and self._is_docked(dock)

    @staticmethod
    def _is_docked(dock: Dock) -> bool:
        return in_window(dock) and not dock.isFloating()

    def _dock_below(self, dock: Dock) -> Dock | None:
        """The next one in its column."""
        under = [d for d in self._docks.values() if self._is_docked(d) and d.x() == dock.x() and d.y() > dock.y()]
        return min(under, key=lambda d: d.y(), default=None)

    def _dock_above(self, dock: Dock) -> Dock | None:
        over = [d for d in self._docks.values() if self._is_docked(d) and d.x() == dock.x() and d.y() < dock.y()]
        return max(over, key=lambda d: d.y(), default=None)
