"""The user's own arrangement of the docks, stored during a lesson or presenting mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QMainWindow

from app.window.docks import Dock, delete_lost_separators, empty_tab_bars, show_tab_bars


def put_back(window: QMainWindow, docks: Mapping[str, Dock], state: QByteArray) -> bool:
    """Restore the docks from ``state``, which was saved from this window, and hide the title bars of tabbed docks.

    Return whether Qt could restore them.
    """
    empty_tab_bars(window)
    restored = window.restoreState(state)
    for dock in docks.values():
        dock.refresh_title()
    delete_lost_separators(window)
    show_tab_bars(window)
    return restored


class SavedDocks:
    """The positions of the docks before a lesson or presenting mode rearranged them.

    The first borrower saves the state, and the last one to give the window back restores it, in whatever order they
    finish.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        self._window, self._docks = window, docks
        self._state: QByteArray | None = None
        self._instead: Callable[[], object] | None = None
        self._with: set[str] = set()

    @property
    def lent(self) -> bool:
        return bool(self._with)

    def borrow(self, who: str) -> None:
        """Save the arrangement, because ``who`` is about to change it."""
        if self._state is None:  # otherwise the docks are still being restored
            self._state = self._window.saveState()
        self._with.add(who)

    def replace(self, arrange: Callable[[], object]) -> None:
        """Set a function to be called when the window is given back, instead of restoring the saved state.

        This is needed when another kind of run is shown by then.
        """
        self._instead = arrange

    def give_back(self, who: str) -> bool:
        """Restore the docks, because ``who`` is done with them.

        If another borrower remains, return False and move nothing.
        """
        self._with.discard(who)
        if self._with or self._state is None:
            return False
        if self._instead is not None:
            self._instead()
        else:
            put_back(self._window, self._docks, self._state)
        return True

    def settle(self) -> None:
        """End the restoration. Later changes are the user's own."""
        if not self._with:
            self._state = self._instead = None
