"""The user's own arrangement of the docks, kept during a lesson or presenting mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QMainWindow

from app.window.docks import Dock
from app.window.separators import delete_lost_separators


def put_back(window: QMainWindow, docks: Mapping[str, Dock], state: QByteArray) -> None:
    """Restore the docks from ``state``, saved from this window, and hide the title bars among tabs."""
    window.restoreState(state)
    for dock in docks.values():
        dock.refresh_title()
    delete_lost_separators(window)


class SavedDocks:
    """The places of the docks before a lesson or presenting mode rearranged them.

    The first borrower saves the state, and the last to give the window back restores it, in whatever order they go.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        self._window, self._docks = window, docks
        self._state: QByteArray | None = None
        self._instead: Callable[[], object] | None = None
        self._with: set[str] = set()

    @property
    def lent(self) -> bool:
        """Whether a borrower has rearranged the window."""
        return bool(self._with)

    def borrow(self, who: str) -> None:
        """Save the arrangement, as ``who`` is about to change it."""
        if self._state is None:  # otherwise the docks are being restored, and not yet in their places
            self._state = self._window.saveState()
        self._with.add(who)

    def replace(self, arrange: Callable[[], object]) -> None:
        """Call ``arrange`` when the window is given back, instead of restoring the saved state, because another kind of
        run is shown by now."""
        self._instead = arrange

    def give_back(self, who: str) -> bool:
        """Restore the docks, as ``who`` is done. Returns False and moves nothing if another borrower remains."""
        self._with.discard(who)
        if self._with or self._state is None:
            return False
        if self._instead is not None:
            self._instead()
        else:
            put_back(self._window, self._docks, self._state)
        return True

    def settle(self) -> None:
        """End the restoration. Changes from now on are the user's."""
        if not self._with:
            self._state = self._instead = None
