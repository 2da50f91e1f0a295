"""Extra height for a large panel, such as a comparison of runs, while it is in front.

Such a panel gets most of the height that it shares with the panels below.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QMainWindow, QTabBar

from app.clock import Timer
from app.widgets.panel import in_window
from app.window.docks import Dock

SHARE = 0.72
"""Portion of the shared height that a large panel gets."""


class PictureRoom(QObject):
    """Watches which panels are in front, and moves the border below a large one.

    When another panel comes to the front, the border returns to its previous position unless the panels below have
    been enlarged since.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        super().__init__(window)
        self._window, self._docks = window, docks
        self._large: Dock | None = None
        self._below: Dock | None = None
        self._before = 0
        self._soon = Timer(self, self._share)
        for dock in docks.values():
            dock.visibilityChanged.connect(self._on_change)

    @Slot()
    def forget(self) -> None:
        """Discard the stored border position after the docks have been rearranged."""
        self._large = self._below = None
        self._soon.start()

    @Slot(bool)
    def _on_change(self, visible: bool) -> None:
        self._soon.start()

    @Slot()
    def _share(self) -> None:
        """Adjust the height once the docks are laid out, depending on whether a large panel is in front."""
        large = next((dock for dock in self._docks.values() if self._is_large(dock)), None)
        below = None if large is None else self._next_dock(large, 1)
        if self._large is not None and self._below is not None and large is None and in_window(self._below):
            front = self._next_dock(self._below, -1)
            if front is not None and self._below.height() < self._before:
                self._resize(front, self._below, self._before)
            self._large = self._below = None
        elif self._large is None and large is not None and below is not None and not self._is_large(below):
            self._large, self._below, self._before = large, below, below.height()
            wanted = round((large.height() + below.height()) * (1 - SHARE))
            if wanted < self._before:
                self._resize(large, below, wanted)

    def _resize(self, above: Dock, below: Dock, height: int) -> None:
        """Set the height of ``below`` to ``height``, short rows to their requested height, and ``above`` to the rest.

        The heights must add up to the total. Otherwise Qt would spread the remainder over all docks, and the rows
        would grow with every change of panels.
        """
        low = [dock for dock in self._docks.values() if dock.row_height and self._is_docked(dock)]
        rows = [dock.row_height for dock in low]
        tabs = [self._tab_height(above), self._tab_height(below)]
        rest = sum(dock.height() for dock in (*low, above, below)) - sum(rows) - height
        heights = [*rows, rest + tabs[0], height + tabs[1]]
        self._window.resizeDocks([*low, above, below], heights, Qt.Orientation.Vertical)

    def _tab_height(self, dock: Dock) -> int:
        """Return the height in pixels of the tabs over a dock, or 0 for a dock without tabs."""
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

    def _next_dock(self, dock: Dock, way: int) -> Dock | None:
        """Return the next dock in the same column: below (1) or above (-1)."""
        column = [d for d in self._docks.values() if self._is_docked(d) and d.x() == dock.x()]
        further = [d for d in column if (d.y() - dock.y()) * way > 0]
        return min(further, key=lambda d: d.y() * way, default=None)
