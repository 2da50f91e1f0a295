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
        self.docks = {name: Dock(panel, self) for name, panel in self.panels.items() if name != "timeline"}
        self.timeline = self._bar("Timeline", self.panels["timeline"])
        self.messages = MessageBar(self)
        self.resize(1366, 768)
        arrange(self, self.docks)

    def add_toolbars(self, transport: QToolBar) -> None:
        """The transport on top, and below it the line of messages, which is there only while there are any."""
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, transport)
        self.addToolBarBreak(Qt.ToolBarArea.TopToolBarArea)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, self.timeline)
        self.addToolBarBreak(Qt.ToolBarArea.TopToolBarArea)
        self._message_line = self._bar("Messages", self.messages)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, self._message_line)
        self._message_line.hide()
        self.messages.installEventFilter(self)

    def _bar(self, title: str, widget: QWidget) -> QToolBar:
        """A row of the window's own as wide as the window."""
        bar = QToolBar(title, self)
        bar.setObjectName(title.lower())
        bar.setProperty("row", True)
        bar.setMovable(False)
        bar.addWidget(widget)
        room = bar.layout()
        if room is not None:
            room.setContentsMargins(0, 0, 0, 0)
        return bar

    @property
    def holders(self) -> dict[str, QWidget]:
        """What each panel sits in, by its id: a dock, or the timeline's row."""
        return {"timeline": self.timeline, **self.docks}

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.messages and event.type() in (QEvent.Type.ShowToParent, QEvent.Type.HideToParent):
            self._message_line.setVisible(not self.messages.isHidden())
        return super().eventFilter(watched, event)

    def show_layout(self, name: str) -> None:
        """Arrange the docks as the named layout has them, with the eye on the picture."""
        arrange(self, self.docks, name, self.workspace.scale)
        self.timeline.show()
        self.panels["policy_bars"].focus_picture()  # type: ignore[attr-defined]

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
