"""One panel in the place of all, and everything back exactly as it was."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QMainWindow, QWidget
from shiboken6 import Shiboken

from app.window.docks import Dock
from app.window.saved_docks import put_back


def focus_of(window: QMainWindow) -> QWidget | None:
    """The widget that has the focus in ``window``, or will have it there; often there is none."""
    return window.focusWidget()


def focus_again(window: QMainWindow, widget: QWidget | None) -> None:
    """The focus where it was, on ``widget`` or nowhere; hiding docks has passed it on."""
    now = focus_of(window)
    if widget is not None and Shiboken.isValid(widget):
        widget.setFocus(Qt.FocusReason.OtherFocusReason)
    elif now is not None:
        now.clearFocus()


class Maximizer:
    """Hides every dock but one.

    Attributes:
        panel: id of the panel that fills the window, None while all stand where they belong.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        self._window, self._docks = window, docks
        self._before: QByteArray | None = None
        self.panel: str | None = None

    def maximize(self, id: str) -> None:
        """Give the window to the panel ``id``, which has a dock."""
        self.restore()
        focus = focus_of(self._window)
        self._before = self._window.saveState()
        self.panel = id
        chosen = self._docks[id]
        for dock in self._docks.values():
            if dock is not chosen:
                dock.hide()
        chosen.setFloating(False)
        chosen.show()
        chosen.raise_()
        if focus is not None and chosen.isAncestorOf(focus):  # hiding the others has passed it on
            focus.setFocus(Qt.FocusReason.OtherFocusReason)

    def restore(self) -> bool:
        """Every dock as it was; False where none was maximized."""
        if self._before is None:
            return False
        focus = focus_of(self._window)
        before, self._before, self.panel = self._before, None, None
        put_back(self._window, self._docks, before)
        if focus is not None:
            focus.setFocus(Qt.FocusReason.OtherFocusReason)
        return True

    def forget(self) -> None:
        """The docks have been arranged anew: there is nothing to go back to."""
        self._before, self.panel = None, None
