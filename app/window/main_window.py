"""The window: docks, toolbar, menus, message bars. No logic; what it does is in the workspace and the session."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QMainWindow, QTabWidget, QToolBar, QVBoxLayout, QWidget

from app.messages.message_bar import MessageBar
from app.panels.base import Panel, in_window
from app.panels.breakpoints import BreakpointsPanel
from app.panels.comparison import ComparisonPanel
from app.panels.controls.panel import ControlsPanel
from app.panels.evolution import EvolutionPanel
from app.panels.explain import ExplainPanel
from app.panels.help import GlossaryDockPanel, ReferencesDockPanel
from app.panels.kl_over_beta import KlOverBetaPanel
from app.panels.lesson import LessonPanel
from app.panels.metrics import MetricsPanel
from app.panels.pipeline import PipelinePanel
from app.panels.policy_bars import PolicyBarsPanel
from app.panels.queue import QueuePanel
from app.panels.score import ScorePanel
from app.panels.shelf import Shelf
from app.panels.step_detail import StepDetailPanel
from app.panels.timeline import TimelinePanel
from app.panels.tokens.panel import TokenInspectorPanel
from app.panels.training_history import TrainingHistoryPanel
from app.panels.what_if.panel import WhatIfPanel
from app.window.docks import Dock
from app.window.layouts import arrange, centre
from app.window.saved_docks import SavedDocks
from app.workspace.workspace import Workspace
from grpo_core.text import tr

PANELS: tuple[type[Panel], ...] = (
    TimelinePanel,
    ControlsPanel,
    MetricsPanel,
    PipelinePanel,
    PolicyBarsPanel,
    TrainingHistoryPanel,
    KlOverBetaPanel,
    ComparisonPanel,
    TokenInspectorPanel,
    EvolutionPanel,
    ScorePanel,
    WhatIfPanel,
    QueuePanel,
    StepDetailPanel,
    ExplainPanel,
    BreakpointsPanel,
    GlossaryDockPanel,
    ReferencesDockPanel,
    LessonPanel,
)


EAGER = (
    "timeline", "controls", "metrics", "pipeline", "policy_bars", "training_history", "queue", "step_detail",
    "explain", "lesson",
)  # fmt: skip
"""Panels that a new window shows, and those whose work goes on unseen; the others are made when they are first seen."""


class MainWindow(QMainWindow):
    """Hosts the panels.

    Attributes:
        panels: by id; one that is not there yet is made when it is asked for.
        docks: by the panel's id.
        saved_docks: how the docks stood before a lesson or a class.
        messages: the non-modal bars under the toolbar.

    Signals:
        closing: the user wants to close; whoever listens decides by ``allow_close``.
        dropped: files were dropped on the window (list of paths).
        arranged: the docks stand as a named layout has them.
        panel_made: a panel has been made.
    """

    closing = Signal()
    dropped = Signal(list)
    arranged = Signal()
    panel_made = Signal(object)

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self.may_close = False
        self.setWindowTitle("GRPO Lab")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.setDockOptions(QMainWindow.DockOption.AllowNestedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.setCorner(Qt.Corner.TopLeftCorner, Qt.DockWidgetArea.TopDockWidgetArea)
        self.setCorner(Qt.Corner.TopRightCorner, Qt.DockWidgetArea.TopDockWidgetArea)
        self.panels = Shelf(PANELS, self._make)
        self.docks = {kind.id: Dock(kind, self) for kind in PANELS if kind is not TimelinePanel}
        for dock in self.docks.values():
            dock.wanted.connect(self.panels.__getitem__)
        for name in EAGER:
            self.panels[name]
        self.saved_docks = SavedDocks(self, self.docks)
        self.messages = MessageBar(self)
        self.resize(1366, 768)
        arrange(self, self.docks)

    def _make(self, kind: type[Panel]) -> Panel:
        panel = kind(self.workspace)
        if kind.id in self.docks:
            self.docks[kind.id].hold(panel)
        self.panel_made.emit(panel)
        return panel

    def add_toolbars(self, transport: QToolBar) -> None:
        """The transport on top; below it, as wide as the window, the messages there are and the timeline."""
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, transport)
        self.addToolBarBreak(Qt.ToolBarArea.TopToolBarArea)
        rows = QWidget()
        column = QVBoxLayout(rows)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.messages)
        column.addWidget(self.panels["timeline"])
        bar = QToolBar(tr("Timeline and messages"), self)
        bar.setObjectName("rows")
        bar.setProperty("row", True)
        bar.setMovable(False)
        bar.addWidget(rows)
        room = bar.layout()
        if room is not None:
            room.setContentsMargins(0, 0, 0, 0)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, bar)

    @property
    def holders(self) -> dict[str, QWidget]:
        """What is shown or hidden for each panel, by its id: its dock; the timeline has none."""
        return {"timeline": self.panels["timeline"], **self.docks}

    def show_layout(self, name: str) -> None:
        """Arrange the docks as the named layout has them, with the eye on the picture."""
        language = self.workspace.run is not None and self.workspace.run.origin.settings.is_language
        arrange(self, self.docks, name, self.workspace.scale, language)
        self.panels["timeline"].show()
        self._focus(centre(name, language))
        self.arranged.emit()

    def focus_picture(self) -> None:
        """The keyboard to the picture of the policy, where one is seen."""
        for name in ("policy_bars", "token_inspector"):
            if in_window(self.docks[name]):
                self._focus(name)
                return

    def _focus(self, name: str) -> None:
        middle = self.panels[name]
        if isinstance(middle, (TokenInspectorPanel, PolicyBarsPanel)):
            middle.focus_picture()

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
