"""The base class of all panels: a widget that draws a ``View``."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from typing import TypeVar, cast

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QWidget
from shiboken6 import Shiboken

from app.clock import now
from app.workspace.view import View
from app.workspace.workspace import Workspace

W = TypeVar("W", bound=QWidget)


def in_window(widget: QWidget) -> bool:
    """Return whether any part of ``widget`` is within the visible area of its window."""
    window = widget.window()
    here = QRect(widget.mapTo(window, QPoint()), widget.size())
    return widget.isVisible() and window.rect().intersects(here)


def around(widget: QWidget | None, kind: Callable[..., W]) -> W | None:
    """Return the innermost widget of class ``kind`` that is ``widget`` or contains it, or None if there is none."""
    assert isinstance(kind, type)
    while widget is not None and not isinstance(widget, kind):
        widget = widget.parentWidget()
    return cast("W | None", widget)


DESCRIBE_SECONDS = 1.0
"""Minimum interval in seconds between two accessible descriptions of a panel during a run. The last one follows when
the run stops.
"""
ROW = 110
"""Minimum height in pixels at 100 % of a row of cards or formulas. A row can request more."""


class Panel(QWidget):
    """The content of a dock. It draws the workspace's current view at most once per frame, and only while visible.

    Attributes:
        id, title: stable name and displayed name, from its row of the panel registry; empty for a panel that is part of
            another widget.
        plans: whether it shows the settings of the next update, or the dotted path of those that it shows.
        films: whether it shows the film within a stage.
        sized: whether what it shows depends on its size.
        controls_are_content: its controls are its content, so exported pictures include them.
        large: whether it needs most of the centre's height while it is in front, leaving little for the panels below.
        row_height: the height of a short panel that needs no more; 0 for all others.

    Signals:
        row_changed: its required height has changed.
        panel_wanted: the panel with this id now shows what the user chose here; bring it to the front of its tabs.
    """

    row_changed = Signal()
    panel_wanted = Signal(str)
    plans: bool | str = True
    films = False
    sized = False
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
        workspace.drawing.connect(self._add_part)

    def set_identity(self, id: str, title: str) -> None:
        self.id, self.title = id, title
        self.setObjectName(id)
        self.setAccessibleName(title)

    @property
    def place_drawn(self) -> object:
        """The :attr:`View.place` last drawn, or None if it has to be redrawn."""
        return None if self._drawn is None else self._drawn[0]

    def on_frame(self) -> None:
        """Draw a frame if the panel is visible and something that it shows has changed. Exceptions are reported."""
        if not self.seen:
            return
        view = self.workspace.drawn_view
        stamp = view.stamp(planned=self.plans, filmed=self.films)
        if stamp == self._drawn:
            return
        self._drawn = stamp
        try:
            if view.run.id != self._run_drawn:
                self._run_drawn = view.run.id
                self.begin_run()
            self.draw(view)
            self._describe(view)
        except Exception:  # two exceptions from event handlers like showEvent in one call of Qt kill the process
            sys.excepthook(*sys.exc_info())

    def _add_part(self, parts: list[Callable[[], object]]) -> None:
        parts.append(self._draw_part)

    def _draw_part(self) -> None:
        if Shiboken.isValid(self):  # not deleted since the frame began
            self.on_frame()

    def _describe(self, view: View) -> None:
        """Update the description for screen readers, throttled during a run."""
        moment = now()
        if not view.running or moment - self._described >= DESCRIBE_SECONDS:
            self._described = moment
            self.describe(self.summary(view))

    def describe(self, sentence: str) -> None:
        """Set the accessible description of the panel and of any plot in it."""
        if sentence != self.accessibleDescription():
            self.setAccessibleDescription(sentence)

    @property
    def seen(self) -> bool:
        """Whether any part of the panel is within its window.

        Qt also calls a dock behind a tab visible, and places it outside the window.
        """
        return in_window(self)

    @abstractmethod
    def draw(self, view: View) -> None:
        """Show ``view``. Called in the GUI thread, and must take no longer than a frame."""

    def begin_run(self) -> None:
        """Discard everything kept from the previous run, such as axes and scroll positions. Called before the new run
        is drawn."""

    def summary(self, view: View) -> str:
        """Return a one-sentence summary of the panel, for screen readers."""
        return ""

    def focus_picture(self) -> None:
        """Give the keyboard focus to the panel's picture, if it has one."""

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size, capped so that a large scale cannot push the window beyond a small screen."""
        scale = self.workspace.scale
        least = super().minimumSizeHint().boundedTo(QSize(round(220 * scale), round(80 * scale)))
        return QSize(least.width(), min(self.row_height, round(ROW * scale))) if self.row_height else least

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width(), self.row_height) if self.row_height else hint

    def set_row_height(self, height: int) -> None:
        """Request exactly this height by size hints alone.

        Calling ``setFixedHeight`` while docks are being arranged would leave a dock on top of its neighbour, because
        Qt's layout is not notified that the size it has set was refused.
        """
        if height != self.row_height:
            self.row_height = height
            self.updateGeometry()
            self.row_changed.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.on_frame()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Adapt to a new size."""
        if self.sized:
            self.renew()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Show the actions of the entire panel, such as exporting it."""
        if not self.actions():
            event.ignore()
            return
        menu = QMenu(self.title, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(self.actions())
        menu.popup(event.globalPos())

    def dispose(self) -> None:
        """Cancel the panel's computations as the program closes."""

    def redraw(self) -> None:
        self._drawn = None
        self.on_frame()

    def renew(self) -> None:
        """Draw again with the next frame, for what can change more often than frames are drawn."""
        self._drawn = None
        self.workspace.request_frame()
