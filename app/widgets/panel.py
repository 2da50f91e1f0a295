"""The base of every panel: a widget that draws a ``View``, and nothing else."""

from __future__ import annotations

import time
from abc import abstractmethod

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QWidget

from app.workspace.view import View
from app.workspace.workspace import Workspace


def in_window(widget: QWidget) -> bool:
    """Whether any part of ``widget`` is in its window."""
    window = widget.window()
    here = QRect(widget.mapTo(window, QPoint()), widget.size())
    return widget.isVisible() and window.rect().intersects(here)


DESCRIBE_SECONDS = 1.0
"""Between two descriptions of a panel while a run goes on; the last one comes when it rests."""
ROW = 110
"""Pixels below which a row of cards or of formulas may not be squeezed, at 100 %; what it asks for may be more."""


class Panel(QWidget):
    """A dock's content. It draws the workspace's current view, once a frame at most, and only while it is visible.

    Attributes:
        id, title: its stable name and the one that people read, given by its row of the registry of panels; empty for
            a panel that is part of something else.
        plans: it shows settings of the next update.
        films: it shows the film within a stage.
        controls_are_content: what can be operated in it is what it shows, so that pictures of it hold it.
        large: it needs most of the middle while it is in front, the panels below it little.
        row_height: the height of a low panel that needs no more; 0 for all others.

    Signals:
        row_changed: it needs another height now.
    """

    row_changed = Signal()
    plans = True
    films = False
    controls_are_content = False
    large = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self._drawn: tuple[object, ...] | None = None
        self.id = self.title = ""
        self._described = 0.0
        self._run_drawn = ""
        self.row_height = 0
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAutoFillBackground(True)  # so that Qt paints neither the dock nor the window below it
        workspace.frame.connect(self.on_frame)

    def set_identity(self, id: str, title: str) -> None:
        """Bear this name and title."""
        self.id, self.title = id, title
        self.setObjectName(id)
        self.setAccessibleName(title)

    @property
    def place_drawn(self) -> object:
        """:attr:`View.place` of what it shows. None where it has to be drawn anew."""
        return None if self._drawn is None else self._drawn[0]

    def on_frame(self) -> None:
        """A frame is due: draw if something that could show has changed and anybody could see it."""
        if not self.seen:
            return
        view = self.workspace.view
        stamp = view.stamp(planned=self.plans, filmed=self.films)
        if stamp == self._drawn:
            return
        self._drawn = stamp
        if view.run.id != self._run_drawn:
            self._run_drawn = view.run.id
            self.begin_run()
        self.draw(view)
        self._describe(view)

    def _describe(self, view: View) -> None:
        """Update the description for screen readers. While a run goes on not more often than anybody listens."""
        now = time.monotonic()
        if not view.running or now - self._described >= DESCRIBE_SECONDS:
            self._described = now
            self.describe(self.summary(view))

    def describe(self, sentence: str) -> None:
        """Have screen readers say ``sentence`` of the panel. One with a plot says it of the plot too."""
        if sentence != self.accessibleDescription():
            self.setAccessibleDescription(sentence)

    @property
    def seen(self) -> bool:
        """Whether any part of it is in its window: Qt calls a dock behind a tab visible too, and keeps it outside."""
        return in_window(self)

    @abstractmethod
    def draw(self, view: View) -> None:
        """Show ``view``. Called in the GUI thread with at most a frame's worth of time."""

    def begin_run(self) -> None:
        """Keep nothing of the run that was drawn before: no axis, no place among rows. Called before it draws."""

    def summary(self, view: View) -> str:
        """The panel in one sentence, for screen readers."""
        return ""

    def focus_picture(self) -> None:
        """Give the keyboard to the panel's picture. A panel without one leaves it where it is."""

    def minimumSizeHint(self) -> QSize:
        """Never so much that a large scale would push the window beyond a small screen."""
        scale = self.workspace.scale
        least = super().minimumSizeHint().boundedTo(QSize(round(220 * scale), round(80 * scale)))
        return QSize(least.width(), min(self.row_height, round(ROW * scale))) if self.row_height else least

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width(), self.row_height) if self.row_height else hint

    def set_row_height(self, height: int) -> None:
        """Ask for exactly this height, by hints alone.

        A fixed height that changes while docks are being arranged leaves a dock over its neighbour: the layout does
        not hear that a size it has set was refused.
        """
        if height != self.row_height:
            self.row_height = height
            self.updateGeometry()
            self.row_changed.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.on_frame()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Show the actions of the whole panel, such as exporting it."""
        if not self.actions():
            event.ignore()
            return
        menu = QMenu(self.title, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(self.actions())
        menu.popup(event.globalPos())

    def dispose(self) -> None:
        """The program closes: nothing more is computed for this panel."""

    def redraw(self) -> None:
        """Forget what is drawn and draw again."""
        self._drawn = None
        self.on_frame()
