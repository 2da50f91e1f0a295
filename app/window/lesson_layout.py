"""Place of a lesson in the window, and how every dock gets back to where it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow, QToolBar, QWidget

from app.panel_registry import EXPLAIN, GLOSSARY, LESSON, TIMELINE
from app.window.docks import Dock
from app.window.saved_docks import SavedDocks
from app.window.separators import delete_lost_separators

WAITING = (EXPLAIN.id, GLOSSARY.id)
"""Panels that come when they are asked for, and then stand beside the lesson."""
SHARE = 0.64
"""Share of the window's width for a lesson that has panels beside it."""
WORDS_ALONE = 0.42
"""Share of the width for a lesson without a picture of its own: there the panels are the picture."""
CROWDED = 1.6
"""From this scale on the panels lie behind the lesson as tabs."""


class LessonLayout:
    """The docks of a lesson, and those of the user meanwhile.

    Attributes:
        panels: what is beside the lesson; None while no lesson has the window.
        alone: a class looks on: the lesson is without the bars above it.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock], users: SavedDocks) -> None:
        self._window, self._docks, self._users = window, docks, users
        self._bars: list[QWidget] = []
        self._crowded, self._has_picture = False, True
        self._share = SHARE
        self.panels: tuple[str, ...] | None = None
        self.alone = False

    def show(self, panels: Sequence[str], scale: float, *, picture: bool = True, again: bool = False) -> None:
        """Give the window to the lesson, with a ``picture`` of its own or without, and ``panels``.

        ``again`` even if they are there already.
        """
        self._users.borrow(LESSON.id)
        self._has_picture = picture
        crowded, share = self._is_crowded(scale), SHARE if picture or not panels else WORDS_ALONE
        if (tuple(panels), crowded, share) == (self.panels, self._crowded, self._share) and not again:
            self._docks[LESSON.id].raise_()
            return
        self.panels, self._crowded, self._share = tuple(panels), crowded, share
        lesson, beside = self._docks[LESSON.id], [self._docks[panel] for panel in panels]
        waiting = [self._docks[panel] for panel in WAITING if panel not in panels]
        for dock in self._docks.values():
            if dock is not lesson:
                dock.hide()
        self._place(lesson, beside, waiting)
        lesson.bare = self.alone
        self._titles()
        self._spare_bars()

    def _place(self, lesson: Dock, beside: Sequence[Dock], waiting: Sequence[Dock]) -> None:
        """The lesson on the left, panels one below the other on the right. Those that wait have a place there too."""
        window, across, down = self._window, Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        docks = [lesson, *beside, *waiting]
        for dock in docks:
            window.removeDockWidget(dock)
            dock.setFloating(False)
        window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, lesson)
        column = [*beside, *waiting[:1]]
        if self._crowded:
            for dock in docks[1:]:
                window.tabifyDockWidget(lesson, dock)
        else:
            window.splitDockWidget(lesson, column[0], across)
            for above, below in pairwise(column):
                window.splitDockWidget(above, below, down)
            for dock in waiting[1:]:
                window.tabifyDockWidget(waiting[0], dock)
        for dock in docks:
            dock.show()
        if not self._crowded:
            wide = window.width()
            window.resizeDocks(
                [lesson, column[0]], [round(wide * self._share), round(wide * (1 - self._share))], across
            )
        for dock in waiting:
            dock.hide()
        lesson.raise_()
        delete_lost_separators(window)

    def fits(self, scale: float) -> bool:
        """Whether the arrangement is the one for ``scale``. Without a lesson there is none."""
        return self.panels is None or self._crowded == self._is_crowded(scale)

    def _is_crowded(self, scale: float) -> bool:
        """Whether panels lie behind the lesson. Before a class never where they are its only picture."""
        return scale >= CROWDED and (self._has_picture or not self.alone)

    def _titles(self) -> None:
        """Among tabs the title bars go. Alone they come back."""
        for dock in self._docks.values():
            dock.refresh_title()

    def _spare_bars(self) -> None:
        """In large type the bars at the top take a third of the window: the lesson does without, as before a class."""
        if not (self._crowded or self.alone):
            for bar in self._bars:
                bar.show()
            self._bars = []
        else:
            there = [*self._window.findChildren(QToolBar), *self._window.findChildren(QWidget, TIMELINE.id)]
            for bar in there:
                if bar.isVisible() and bar.objectName() != "rows":
                    self._bars.append(bar)
                    bar.hide()

    def give_back(self) -> None:
        """Every dock as it was before the lesson."""
        self.panels = None
        self._docks[LESSON.id].bare = False
        for bar in self._bars:
            bar.show()
        self._bars = []
        if self._users.give_back(LESSON.id):
            self._users.settle()
