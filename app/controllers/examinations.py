"""Recorded runs are examined when they are opened; what is wrong with one is said at once."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.controllers.recorded_runs import RecordedRuns
from app.messages.message import BarAction, Message, Severity
from app.messages.message_bar import MessageBar
from app.panels.base import in_window
from app.panels.registry import DIAGNOSIS
from app.window.main_window import MainWindow
from app.workspace.recorded_run import RecordedRun
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.text import tr

FOUND = "recorded findings"
"""Id of the message with the findings of the run that is shown."""


class Examinations(QObject):
    """Has the recorded run that is shown examined once its series are there, and says what was found.

    Runs whose updates take long to evaluate (``RecordedRun.large``) are left alone until somebody asks in the panel.
    """

    def __init__(
        self, window: MainWindow, workspace: Workspace, run_manager: RunManager, recorded_runs: RecordedRuns,
        messages: MessageBar, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._window, self._workspace, self._messages = window, workspace, messages
        recorded_runs.computed.connect(self._examine)
        run_manager.runs_changed.connect(self._on_runs)
        workspace.activated.connect(self._on_activated)
        workspace.examination.changed.connect(self._count)
        workspace.examination.ended.connect(self._on_ended)

    @Slot()
    def _on_activated(self) -> None:
        self._messages.remove(FOUND)
        self._count()
        self._examine()

    @Slot()
    def _on_runs(self) -> None:
        """A run may have been closed."""
        self._workspace.examination.keep([run.id for run in self._workspace.runs])
        self._examine()

    @Slot()
    def _examine(self) -> None:
        run, examination = self._workspace.run, self._workspace.examination
        if (
            isinstance(run, RecordedRun) and not run.large and run.computed == run.head
            and not examination.busy and examination.of(run.id) is None
        ):  # fmt: skip
            examination.start(run.id, run.path)

    @Slot()
    def _count(self) -> None:
        """Write the number of findings on the panel's tab."""
        run = self._workspace.run
        self._window.docks[DIAGNOSIS.id].set_count(0 if run is None else len(self._problems(run.id)))

    def _problems(self, run: str) -> list[str]:
        examined = self._workspace.examination.of(run)
        if examined is None:
            return []
        from app.panels.diagnosis.report import problems  # which a program that opens no recorded run never needs

        return problems(examined)

    @Slot(str)
    def _on_ended(self, run: str) -> None:
        if self._workspace.run is None or self._workspace.run.id != run:
            self._examine()  # another run was opened meanwhile
            return
        titles = self._problems(run)
        if not titles or in_window(self._window.docks[DIAGNOSIS.id]):
            return
        text = tr("{title}, findings: {count}. {titles}.").format(
            title=self._workspace.run.title, count=len(titles), titles="; ".join(titles)
        )
        show = BarAction(text=tr("Show the diagnosis"), run=self._show)
        self._messages.post(Message(text=text, severity=Severity.INFO, actions=(show,), id=FOUND))

    def _show(self) -> None:
        self._window.show_panel(DIAGNOSIS)
