"""Where a lesson stands in the window, and how every dock gets back to where it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QMainWindow, QToolBar, QWidget

from app.docks import GRIPPED, Dock
from app.panels.timeline import TimelinePanel

LESSON = "lesson"
"""The panel that gives the lesson."""
SHARE = 0.64
"""Of the window's width, for a lesson that has panels beside it."""
CROWDED = 1.6
"""From this scale on the panels lie behind the lesson as tabs."""


class LessonLayout:
    """The docks of a lesson, and those of the user meanwhile.

    Attributes:
        panels: what stands beside the lesson; None while no lesson has the window.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        self._window, self._docks = window, docks
        self._before: QByteArray | None = None
        self._bars: list[QWidget] = []
        self.panels: tuple[str, ...] | None = None

    def show(self, panels: Sequence[str], scale: float, *, again: bool = False) -> None:
        """Give the window to the lesson and ``panels``; ``again`` even if they stand there already."""
        if self._before is None:
            self._before = self._window.saveState()
        if tuple(panels) == self.panels and not again:
            return
        self.panels = tuple(panels)
        lesson, beside = self._docks[LESSON], [self._docks[panel] for panel in panels]
        for dock in self._docks.values():
            if dock is not lesson:
                dock.hide()
        for dock in (lesson, *beside):
            self._window.removeDockWidget(dock)
            dock.setFloating(False)
        self._window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, lesson)
        if scale >= CROWDED:
            for dock in beside:
                self._window.tabifyDockWidget(lesson, dock)
        elif beside:
            self._window.splitDockWidget(lesson, beside[0], Qt.Orientation.Horizontal)
            for above, below in pairwise(beside):
                self._window.splitDockWidget(above, below, Qt.Orientation.Vertical)
        for dock in (lesson, *beside):
            dock.show()
        lesson.raise_()
        self._titles()
        self._spare_bars(scale)
        if beside and scale < CROWDED:
            width = self._window.width()
            sizes = [round(width * SHARE), round(width * (1 - SHARE))]
            self._window.resizeDocks([lesson, beside[0]], sizes, Qt.Orientation.Horizontal)

    def _spare_bars(self, scale: float) -> None:
        """In large type the bars at the top take a third of the window: the lesson does without."""
        if scale >= CROWDED and not self._bars:
            there = [*self._window.findChildren(QToolBar), *self._window.findChildren(TimelinePanel)]
            self._bars = [bar for bar in there if bar.isVisible() and bar.objectName() != "rows"]
            for bar in self._bars:
                bar.hide()

    def give_back(self) -> None:
        """Every dock as it was before the lesson."""
        before, self._before, self.panels = self._before, None, None
        for bar in self._bars:
            bar.show()
        self._bars = []
        if before is not None:
            self._window.restoreState(before)
            self._titles()

    def _titles(self) -> None:
        """Among tabs the title bars go; alone they come back."""
        for id, dock in self._docks.items():
            if id not in GRIPPED:
                dock.refresh_title()
