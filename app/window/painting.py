"""Painting a frame: all windows together, once every panel has drawn, with slow widgets painted ahead."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from shiboken6 import Shiboken

from app.clock import Timer
from app.theme.painted_ahead import PaintedAhead, looks_different
from app.workspace.workspace import Workspace

AT_ONCE = frozenset(
    {
        QEvent.Type.MouseButtonPress,
        QEvent.Type.MouseButtonDblClick,
        QEvent.Type.Wheel,
        QEvent.Type.KeyPress,
        QEvent.Type.TouchBegin,
        QEvent.Type.TabletPress,
        QEvent.Type.Drop,
        QEvent.Type.Resize,
        QEvent.Type.Expose,
    }
)
"""Events of a window before which a frame that is being drawn in parts is drawn to the end.

What the user does then meets panels that all show the same update, and so does what Qt paints at once.
"""


class Painting(QObject):
    """Holds back the painting of every window while a frame is drawn, and then paints them all.

    Qt requests it several times during a frame, because the scene of each plot requests an immediate flush.
    """

    def __init__(self, workspace: Workspace, parent: QObject) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._held: list[QObject] = []
        """The windows whose painting is held back, and their native windows."""
        self._asked: list[QWidget] = []
        """The windows that Qt has requested to paint."""
        self._timer = Timer(self, self._paint)
        workspace.drawing.connect(self._hold)
        workspace.frame.connect(self._on_frame)

    @property
    def due(self) -> bool:
        """Whether a frame is being drawn, or has been drawn and not yet painted."""
        return bool(self._held)

    @Slot()
    def _hold(self) -> None:
        if not self._held:
            natives = [native for native in QGuiApplication.topLevelWindows() if native.isVisible()]
            self._held = [*natives, *filter(None, (QWidget.find(native.winId()) for native in natives))]
            for held in self._held:
                held.installEventFilter(self)

    @Slot()
    def _on_frame(self) -> None:
        """Paint the frame after pending input. If it is drawn in parts, slow widgets are painted ahead first."""
        self._hold()
        if self._workspace.divided:
            self._workspace.add_parts([self._add_paintings])
        else:
            self._timer.start()

    def _add_paintings(self) -> None:
        """Add a part for each slow widget that the panels have changed, and then let everything be painted."""
        self._workspace.add_parts(
            [*(partial(_paint_ahead, widget) for widget in [*looks_different]), self._timer.start]
        )

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind is QEvent.Type.UpdateRequest and isinstance(watched, QWidget):
            self._asked.append(watched)
            return True
        if kind in AT_ONCE and not isinstance(watched, QWidget):
            self._workspace.timer.complete()
            self._drop()  # the buffer may be replaced
        return False

    @Slot()
    def _paint(self) -> None:
        held, self._held = self._held, []
        asked, self._asked = list(dict.fromkeys(self._asked)), []
        for one in filter(Shiboken.isValid, held):
            one.removeEventFilter(self)
        PaintedAhead.in_buffer = True
        try:
            for window in filter(Shiboken.isValid, asked):
                QCoreApplication.sendEvent(window, QEvent(QEvent.Type.UpdateRequest))
        finally:
            PaintedAhead.in_buffer = False
            self._drop()

    @staticmethod
    def _drop() -> None:
        for widget in [*looks_different]:
            widget.drop()
        looks_different.clear()


def _paint_ahead(widget: PaintedAhead) -> None:
    if Shiboken.isValid(widget):
        widget.paint_ahead()
