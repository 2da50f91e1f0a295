"""The arrangement of the window for a lesson, and the restoration of all docks afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow, QToolBar, QWidget

from app.panel_registry import EXPLAIN, GLOSSARY
from app.teaching.panel_rows import LESSON
from app.window.docks import Dock, SavedDocks, delete_lost_separators

WAITING = (EXPLAIN.id, GLOSSARY.id)
"""Panels that are placed next to the lesson only when opened."""
SHARE = 0.64
"""Share of the window's width for a lesson with panels next to it."""
WORDS_ALONE = 0.42
"""Share of the width for a lesson without its own picture. The panels serve as its picture."""
CROWDED = 1.6
"""Minimum scale at which the panels are tabs behind the lesson."""


class LessonLayout:
    """Arranges the docks for a lesson, and stores the user's own arrangement in the meantime.

    Attributes:
        panels: the panels next to the lesson; None while no lesson is shown.
        alone: whether the lesson is presented, without the bars above it.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock], users: SavedDocks) -> None:
        self._window, self._docks, self._users = window, docks, users
        self._bars: list[QWidget] = []
        self._crowded, self._has_picture = False, True
        self._share, self._run = SHARE, True
        self.panels: tuple[str, ...] | None = None
        self.alone = False

    def show(
        self, panels: Sequence[str], scale: float, *, picture: bool = True, run: bool = True, again: bool = False
    ) -> None:
        """Arrange the window for the lesson, with or without its own ``picture``, and with ``panels`` next to it.

        ``scale`` is the user's scale. ``run`` is whether the lesson shows its run, so that the bars above it are of
        use. ``again`` rearranges the panels even if they are already shown.
        """
        self._users.borrow(LESSON.id)
        self._has_picture = picture
        crowded, share = self._is_crowded(scale), SHARE if picture or not panels else WORDS_ALONE
        if (tuple(panels), crowded, share, run) == (self.panels, self._crowded, self._share, self._run) and not again:
            self._docks[LESSON.id].raise_()
            return
        self.panels, self._crowded, self._share, self._run = tuple(panels), crowded, share, run
        lesson, beside = self._docks[LESSON.id], [self._docks[panel] for panel in panels]
        waiting = [self._docks[panel] for panel in WAITING if panel not in panels]
        for dock in self._docks.values():
            if dock is not lesson:
                dock.hide()
        self._place(lesson, beside, waiting)
        lesson.bare = self.alone
        for dock in self._docks.values():  # only those of tabbed docks are hidden
            dock.refresh_title()
        self._spare_bars()

    def _place(self, lesson: Dock, beside: Sequence[Dock], waiting: Sequence[Dock]) -> None:
        """Place the lesson on the left and the panels on the right, with space there for panels not opened yet."""
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
        """Return whether the current arrangement suits ``scale``, or False without a lesson."""
        return self.panels is None or self._crowded == self._is_crowded(scale)

    def _is_crowded(self, scale: float) -> bool:
        """Return whether the panels are tabs behind the lesson.

        While presenting, panels that are the lesson's only picture are never tabs.
        """
        return scale >= CROWDED and (self._has_picture or not self.alone)

    def _spare_bars(self) -> None:
        """Hide the bars at the top without a run, when presenting, and in large type, where they would fill a third of
        the window.

        Otherwise show them, because the list of lessons can fill the window without them.
        """
        if self._run and not (self._crowded or self.alone):
            for bar in (*self._window.findChildren(QToolBar), *self._bars):
                bar.show()
            self._bars = []
        else:
            for bar in self._window.findChildren(QToolBar):
                if bar.isVisible():
                    self._bars.append(bar)
                    bar.hide()

    def give_back(self) -> None:
        """Restore every dock to its state before the lesson."""
        self.panels = None
        self._docks[LESSON.id].bare = False
        for bar in self._bars:
            bar.show()
        self._bars = []
        if self._users.give_back(LESSON.id):
            self._users.settle()
