"""Showing one panel in place of all others, in a larger font, and restoring the other panels."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QByteArray, QEvent, QSize, Qt
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget
from shiboken6 import Shiboken

from app.panel_registry import PANELS
from app.theme.look import SCALES, Look
from app.window.docks import Dock
from app.window.saved_docks import put_back

MOST = 1.5
"""Maximum factor by which a maximized panel is enlarged."""
BARS = (900, 110)
"""Pixels at 100 %: width of the toolbar, and height of everything above the panel."""


def scale_alone(size: QSize, panel: str, scale: float) -> float:
    """Return the scale for a panel that fills a window of ``size``, at least the usual ``scale``."""
    wide, high = next(spec.size for spec in PANELS if spec.id == panel)
    most = min(size.width() / max(wide, BARS[0]), size.height() / (high + BARS[1]), scale * MOST)
    return max((step for step in SCALES if step <= most), default=scale) if most > scale else scale


def focus_of(window: QMainWindow) -> QWidget | None:
    """Return the widget that has the focus in ``window``, or will have it when the window is activated.

    The result is None if there is no such widget, which is often the case.
    """
    return window.focusWidget()


def focus_again(window: QMainWindow, widget: QWidget | None) -> None:
    """Return the focus to ``widget``, or clear the focus, after it was moved by hiding docks."""
    now = focus_of(window)
    if widget is not None and Shiboken.isValid(widget):
        widget.setFocus(Qt.FocusReason.OtherFocusReason)
    elif now is not None:
        now.clearFocus()


class Maximizer:
    """Hides every dock but one, and enlarges its font.

    Attributes:
        panel: ID of the maximized panel, None if there is none.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock], look: Look) -> None:
        self._window, self._docks, self._look = window, docks, look
        self._before: QByteArray | None = None
        self._scale = look.scale
        self.panel: str | None = None

    def maximize(self, id: str, *, enlarge: bool = True) -> None:
        """Maximize the panel called ``id``, which has a dock.

        ``enlarge``: whether to enlarge its font as far as it fits.
        """
        self.restore()
        self._scale = self._look.scale
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
        if focus is not None and chosen.isAncestorOf(focus):  # hiding the others has moved the focus
            focus.setFocus(Qt.FocusReason.OtherFocusReason)
        if enlarge:
            self._look.set(scale=scale_alone(self._window.size(), id, self._scale))

    def restore(self) -> bool:
        """Restore every dock. Return False if none was maximized."""
        if self._before is None:
            return False
        focus = focus_of(self._window)
        before = self._before
        self._look.set(scale=self._scale)
        QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)  # the bars above have their heights again
        self._before, self.panel = None, None
        put_back(self._window, self._docks, before)
        if focus is not None:
            focus.setFocus(Qt.FocusReason.OtherFocusReason)
        return True

    def forget(self) -> None:
        """Restore only the font size, because the docks are about to be rearranged anyway."""
        if self.panel is not None:
            self._look.set(scale=self._scale)
        self._before, self.panel = None, None
