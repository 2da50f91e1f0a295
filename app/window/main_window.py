"""The main window: docks, toolbar, menus, message bars. The logic is in the workspace and the controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from PySide6.QtCore import QByteArray, QChildEvent, QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QMainWindow, QTabBar, QTabWidget, QToolBar, QWidget

from app.boxes import down
from app.messages.message_bar import MessageBar
from app.messages.overlay import MessageOverlay
from app.panel_registry import EXPLAIN, PANELS, TIMELINE
from app.widgets.panel import Panel, in_window
from app.widgets.panel_spec import Area, PanelSpec
from app.window.docks import Dock, SavedDocks, put_back
from app.window.explain_homes import ExplainHomes
from app.window.layouts import BANDIT, LANGUAGE, RECORDED, arrange, arrangement
from app.window.painting import Painting
from app.window.picture_room import PictureRoom
from app.workspace.workspace import Workspace
from grpo_core.text import tr

P = TypeVar("P", bound=Panel)


class PanelSet(dict[str, Panel]):
    """The panels created so far, by id. One that is looked up and does not exist yet is created.

    A window thus opens without creating the panels behind tabs.

    Attributes:
        specs: the registry's entries of all panels, by id, in order.

    Args:
        on_made: called once for each new panel, with its registry entry.
    """

    def __init__(self, workspace: Workspace, on_made: Callable[[PanelSpec[Panel], Panel], None]) -> None:
        super().__init__()
        self.specs = {spec.id: spec for spec in PANELS}
        self._workspace, self._on_made = workspace, on_made

    def of(self, spec: PanelSpec[P]) -> P:
        """Return the panel of a registry entry with its precise type, creating it if needed."""
        return cast(P, self[spec.id])

    def __missing__(self, id: str) -> Panel:
        spec = self.specs[id]
        panel = self[id] = spec.make(self._workspace)
        self._on_made(spec, panel)
        return panel


class MainWindow(QMainWindow):
    """The main window, which contains the panels.

    Attributes:
        panels: panels by id, created on first access.
        docks: docks by panel id.
        saved_docks: the arrangement of the docks before a lesson or presenting mode.
        alone: id of the panel that fills the window in place of all others; empty if there is none.

    Signals:
        closing: emitted when the user wants to close the window; listeners decide with ``allow_close``.
        dropped: emitted with a list of paths when files were dropped on the window.
        arranged: emitted when the docks have been arranged according to a named layout.
        left_alone: emitted when panels and toolbars are shown again after one panel filled the window.
        panel_made: emitted when a panel has been created.
    """

    closing = Signal()
    dropped = Signal(list)
    arranged = Signal()
    left_alone = Signal()
    panel_made = Signal(object)

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self.workspace = workspace
        self.may_close = False
        self.alone = ""
        self._beside: QByteArray | None = None
        """The docks before one panel filled the window."""
        self.setWindowTitle("GRPO Lab")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.setDockOptions(QMainWindow.DockOption.AllowNestedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.setCorner(Qt.Corner.TopLeftCorner, Qt.DockWidgetArea.TopDockWidgetArea)
        self.setCorner(Qt.Corner.TopRightCorner, Qt.DockWidgetArea.TopDockWidgetArea)
        self.panels = PanelSet(workspace, self._hold)
        self.docks = {spec.id: Dock(spec, self) for spec in PANELS if spec.area is not Area.TOP}
        for dock in self.docks.values():
            dock.wanted.connect(self.panels.of)
        self.saved_docks = SavedDocks(self, self.docks)
        self._space = PictureRoom(self, self.docks)
        self.arranged.connect(self._space.forget)
        self.messages = MessageBar(self)
        self.overlay = MessageOverlay(self, self.messages, workspace)
        self.painting = Painting(workspace, self)
        workspace.frame.connect(self.overlay.lift)
        self.explain_homes = ExplainHomes(
            self, workspace, self.docks[EXPLAIN.id], self.panels.of(EXPLAIN), self.saved_docks, self.overlay
        )
        workspace.explained.connect(self.explain_homes.show)
        self.arranged.connect(self.explain_homes.close)
        self.resize(1366, 768)
        arrange(self, self.docks)

    def _hold(self, spec: PanelSpec[Panel], panel: Panel) -> None:
        self.panel_made.emit(panel)  # first, because a dock that is shown draws the panel
        if spec.id in self.docks:
            self.docks[spec.id].hold(panel)

    def show_panel(self, spec: PanelSpec[P]) -> P:
        """Show the dock of a panel, in front of its tabs, and return the panel."""
        if self.alone != spec.id:
            self.leave_alone()
        dock = self.docks[spec.id]
        dock.show()
        dock.raise_()
        return self.panels.of(spec)

    def childEvent(self, event: QChildEvent) -> None:
        """Give the tab bars, which Qt creates whenever docks become tabs, full titles and an accessible name."""
        super().childEvent(event)
        if event.type() == QEvent.Type.ChildPolished and isinstance(bar := event.child(), QTabBar):
            bar.setAccessibleName(tr("Panels"))
            bar.setElideMode(Qt.TextElideMode.ElideNone)
            bar.setUsesScrollButtons(True)

    def add_toolbars(self, transport: QToolBar) -> None:
        """Add the transport at the top and the timeline below it, as wide as the window."""
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, transport)
        self.addToolBarBreak(Qt.ToolBarArea.TopToolBarArea)
        rows = QWidget()
        down(self.panels.of(TIMELINE), on=rows, margins=0, spacing=0)
        bar = QToolBar(tr("Timeline"), self)
        bar.setObjectName("rows")
        bar.setProperty("row", True)
        bar.setMovable(False)
        bar.addWidget(rows)
        space = bar.layout()
        if space is not None:
            space.setContentsMargins(0, 0, 0, 0)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, bar)

    @property
    def holders(self) -> dict[str, QWidget]:
        """Widget to show or hide for each panel, by id: its dock, except for the timeline."""
        return {TIMELINE.id: self.panels.of(TIMELINE), **self.docks}

    def is_shown(self, id: str) -> bool:
        """Return whether the panel ``id`` is shown, even if behind another tab."""
        return self.holders[id].isVisible()

    def toggle(self, id: str) -> None:
        """Hide the panel ``id`` if it is seen, otherwise bring it to the front."""
        holder = self.holders[id]
        seen = in_window(holder)
        self.leave_alone()
        holder.setVisible(not seen)
        if not seen:
            holder.raise_()
            self.panels[id].focus_picture()

    def show_alone(self, id: str) -> None:
        """Show the panel ``id`` in place of all others and of the toolbars, until :meth:`leave_alone`."""
        if not self.alone:
            self._beside = self.saveState()
        elif self.alone != id:
            self._set_bare(False)
        self.alone = id
        for dock in sorted(self.docks.values(), key=in_window):  # the front tab last: hiding it shows the next one
            dock.setFloating(False)
            dock.setVisible(dock is self.docks[id])
        self._set_bare(True)
        self.show_bars(False)

    def leave_alone(self) -> None:
        """Show the panels and the toolbars as they were before one panel filled the window, except in a lesson."""
        if self.alone and self._beside is not None and not self.saved_docks.lent:
            self._set_bare(False)
            self.alone = ""
            self._make_panels()
            put_back(self, self.docks, self._beside)
            self.left_alone.emit()

    def _set_bare(self, on: bool) -> None:
        dock = self.docks[self.alone]
        dock.bare = on
        dock.refresh_title()

    def show_bars(self, on: bool) -> None:
        for bar in self.findChildren(QToolBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            bar.setVisible(on)

    def show_layout(self, name: str) -> None:
        """Arrange the docks according to the named layout, and focus the picture in the middle."""
        left = bool(self.alone) and not self.saved_docks.lent
        if left:
            self._set_bare(False)
            self.alone = ""
        self.show_bars(True)
        language = self.workspace.run is not None and self.workspace.run.origin.settings.is_language
        arrange(self, self.docks, name, self.workspace.scale, language)
        self.panels.of(TIMELINE).show()
        if self.isVisible():
            focus: QWidget | None = self.focusWidget()
            self.panels[arrangement(name, language=language).picture].focus_picture()
            if focus is not None and self.focusWidget() is focus:  # not on the button to which Qt has moved it
                self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.arranged.emit()
        if left:
            self.left_alone.emit()

    def focus_picture(self) -> None:
        """Move the keyboard focus to the picture of the policy, if it is visible."""
        pictures = (arrangement(name, language=False).picture for name in (BANDIT, LANGUAGE, RECORDED))
        seen = [name for name in pictures if in_window(self.docks[name])]
        if seen:
            self.panels[seen[0]].focus_picture()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press the focused button with Return too, as Qt does in dialogs."""
        button = self.focusWidget()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and isinstance(button, QAbstractButton):
            button.click()
        else:
            super().keyPressEvent(event)

    def _make_panels(self) -> None:
        """Create the panels that layouts show or that work in the background."""
        for spec in PANELS:
            if spec.eager:
                self.panels.of(spec)

    def setVisible(self, visible: bool) -> None:
        """Create the panels before Qt shows their docks, which would lay out the window for each of them."""
        first = visible and not self.alone and not self.isVisible()
        if first:
            self._make_panels()
        super().setVisible(visible)
        if first:
            self.focus_picture()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.may_close:
            event.accept()
        else:
            event.ignore()
            self.closing.emit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.dropped.emit([url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()])

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.workspace.request_frame()
