"""The docks as the user has them, while a lesson or a class has the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QMainWindow

from app.window.docks import Dock
from app.window.separators import delete_lost_separators


def put_back(window: QMainWindow, docks: Mapping[str, Dock], state: QByteArray) -> None:
    """Every dock as ``state`` of this very window has it. Among tabs the title bars go again."""
    window.restoreState(state)
    for dock in docks.values():
        dock.refresh_title()
    delete_lost_separators(window)


class SavedDocks:
    """Places of the docks before a lesson or a class arranged them.

    The first borrower saves the state, and the last to give the window back restores it, in whatever order they go.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        self._window, self._docks = window, docks
        self._state: QByteArray | None = None
        self._instead: Callable[[], object] | None = None
        self._with: set[str] = set()

    @property
    def lent(self) -> bool:
        """Whether somebody has the window."""
        return bool(self._with)

    def borrow(self, who: str) -> None:
        """``who`` is about to arrange the docks."""
        if self._state is None:  # else they are on their way back, and not yet what they were
            self._state = self._window.saveState()
        self._with.add(who)

    def replace(self, arrange: Callable[[], object]) -> None:
        """Call ``arrange`` when the window is given back, in place of the state that was saved: another kind of run is
        shown now."""
        self._instead = arrange

    def give_back(self, who: str) -> bool:
        """``who`` is done: every dock as it was. False, and nothing moves, where somebody else has the window."""
        self._with.discard(who)
        if self._with or self._state is None:
            return False
        if self._instead is not None:
            self._instead()
        else:
            put_back(self._window, self._docks, self._state)
        return True

    def settle(self) -> None:
        """They are back: what happens to them from now on is the user's doing."""
        if not self._with:
            self._state = self._instead = None
