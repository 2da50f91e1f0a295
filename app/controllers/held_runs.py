"""Detection that another window has closed a run's file, so that the run can be continued here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.clock import Timer
from app.workspace.run_handle import RunHandle
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.errors import RunFileError
from grpo_core.runs.run_file import RunReader
from grpo_core.text import tr

LOOK_MS = 2000


class HeldRuns(QObject):
    """While another window writes the file of the current run, checks periodically whether it still does.

    Args:
        workspace: the workspace with the runs.
        run_manager: the manager of the runs.
        reopen: rereads a run's file and shows it, if the other window has added updates.
        parent: the Qt parent.
    """

    def __init__(
        self, workspace: Workspace, run_manager: RunManager, reopen: Callable[[Path], object], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._workspace, self._run_manager, self._reopen = workspace, run_manager, reopen
        self._timer = Timer(self, self.look, LOOK_MS, repeats=True)
        run_manager.runs_changed.connect(self._on_runs)
        workspace.activated.connect(self._on_runs)

    @Slot()
    def _on_runs(self) -> None:
        run = self._workspace.run
        if run is not None and run.held:
            self._timer.start()
        else:
            self._timer.stop()

    @Slot()
    def look(self) -> None:
        """Allow the current run to be continued if no other window writes it any more."""
        run = self._workspace.run
        if run is None or not run.release():
            return
        if _last(run) == run.head:
            self._run_manager.runs_changed.emit()
            self._workspace.request_frame()
        else:
            self._reopen(run.path)
        self._workspace.problem.emit(
            tr("{name} is no longer being written by another window: it can be continued here.").format(
                name=run.path.name
            ),
            "info",
        )


def _last(run: RunHandle) -> int | None:
    """Return the last update in a run's file, or None if the file cannot be read."""
    with suppress(RunFileError), closing(RunReader.open(run.path)) as reader:
        return reader.last
    return None
