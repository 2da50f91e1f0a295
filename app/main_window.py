"""The window: docks, toolbar, menus, message bars. No logic; what it does is in the workspace and the session."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QMainWindow, QTabWidget, QToolBar, QWidget

from app.crash.report_bar import MessageBar
from app.docks import Dock, arrange
from app.panels.base import Panel
from app.panels.controls.panel import ControlsPanel
from app.panels.explain import ExplainPanel
from app.panels.help import GlossaryDockPanel, ReferencesDockPanel
from app.panels.kl_over_beta import KlOverBetaPanel
from app.panels.metrics import MetricsPanel
from app.panels.pipeline import PipelinePanel
from app.panels.policy_bars import PolicyBarsPanel
from app.panels.step_detail import StepDetailPanel
from app.panels.timeline import TimelinePanel
from app.panels.tokens.panel import TokenInspectorPanel
from app.panels.training_history import TrainingHistoryPanel
from app.workspace.workspace import Workspace

PANELS: tuple[type[Panel], ...] = (
    TimelinePanel,
    ControlsPanel,
    MetricsPanel,
    PipelinePanel,
    PolicyBarsPanel,
    TrainingHistoryPanel,
    KlOverBetaPanel,
    TokenInspectorPanel,
    StepDetailPanel,
    ExplainPanel,
    GlossaryDockPanel,
    ReferencesDockPanel,
)


class MainWindow(QMainWindow):
    """Hosts the panels.

    Attributes:
        panels: by id.
        docks: by the panel's id.
        messages: the non-modal bars under the toolbar.

    Signals:
        closing: the user wants to close; whoever listens decides by ``allow_close``.
        dropped: files were dropped on the window (list of paths).
    """

    closing = Signal()
    dropped = Signal(list)

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
        self.panels = {cls.id: cls(workspace) for cls in PANELS}
        self.docks = {name: Dock(panel, self) for name, panel in self.panels.items()}
        self.messages = MessageBar(self)
        self.resize(1366, 768)
        arrange(self, self.docks)

    def add_toolbars(self, transport: QToolBar) -> None:
        """The transport on top, and below it the line of messages, which is there only while there are any."""
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, transport)
        self.addToolBarBreak(Qt.ToolBarArea.TopToolBarArea)
        self._message_line = QToolBar("Messages", self)
        self._message_line.setObjectName("messages")
        self._message_line.setMovable(False)
        self._message_line.setContentsMargins(0, 0, 0, 0)
        self._message_action = self._message_line.addWidget(self.messages)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, self._message_line)
        self._message_line.hide()
        self.messages.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.messages and event.type() in (QEvent.Type.ShowToParent, QEvent.Type.HideToParent):
            self._message_line.setVisible(not self.messages.isHidden())
        return super().eventFilter(watched, event)

    def show_layout(self, name: str) -> None:
        """Arrange the docks as the named layout has them."""
        arrange(self, self.docks, name, self.workspace.scale)

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
