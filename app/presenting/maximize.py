"""One panel in the place of all, in larger type, and everything back exactly as it was."""

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
"""Times the scale before, for a panel that has the window to itself."""
BARS = (900, 110)
"""Width that the toolbar needs, and height of all that stands above the panel, in pixels at 100 %."""


def scale_alone(size: QSize, panel: str, scale: float) -> float:
    """The scale for a panel that fills a window of ``size`` alone. At least ``scale``, which all panels have."""
    wide, high = next(spec.size for spec in PANELS if spec.id == panel)
    most = min(size.width() / max(wide, BARS[0]), size.height() / (high + BARS[1]), scale * MOST)
    return max((step for step in SCALES if step <= most), default=scale) if most > scale else scale


def focus_of(window: QMainWindow) -> QWidget | None:
    """The widget that has the focus in ``window``, or will have it there. Often there is none."""
    return window.focusWidget()


def focus_again(window: QMainWindow, widget: QWidget | None) -> None:
    """The focus where it was, on ``widget`` or nowhere. Hiding docks has passed it on."""
    now = focus_of(window)
    if widget is not None and Shiboken.isValid(widget):
        widget.setFocus(Qt.FocusReason.OtherFocusReason)
    elif now is not None:
        now.clearFocus()


class Maximizer:
    """Hides every dock but one, and enlarges its type.

    Attributes:
        panel: id of the panel that fills the window, None while all are where they belong.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock], look: Look) -> None:
        self._window, self._docks, self._look = window, docks, look
        self._before: QByteArray | None = None
        self._scale = look.scale
        self.panel: str | None = None

    def maximize(self, id: str, *, enlarge: bool = True) -> None:
        """Give the window to the panel ``id``, which has a dock. ``enlarge`` its type as far as it has room."""
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
        if focus is not None and chosen.isAncestorOf(focus):  # hiding the others has passed it on
            focus.setFocus(Qt.FocusReason.OtherFocusReason)
        if enlarge:
            self._look.set(scale=scale_alone(self._window.size(), id, self._scale))

    def restore(self) -> bool:
        """Every dock as it was. False where none was maximized."""
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
        """The docks are being arranged anew: there is nothing to go back to but the size of the type."""
        if self.panel is not None:
            self._look.set(scale=self._scale)
        self._before, self.panel = None, None
