"""Detection that another window has closed a run's file, so that the run can be continued here."""

from __future__ import annotations

from contextlib import closing, suppress

from PySide6.QtCore import QObject, Slot

from app.clock import Timer
from app.controllers.program import Program
from app.controllers.runs import RunsController
from app.workspace.run_handle import RunHandle
from grpo_core.errors import RunFileError
from grpo_core.runs.run_file import RunReader
from grpo_core.text import tr

LOOK_MS = 2000


class HeldRuns(QObject):
    """While another window writes the file of the current run, checks periodically whether it still does."""

    def __init__(self, program: Program, runs: RunsController) -> None:
        super().__init__(program)
        self._workspace, self._run_manager, self._runs = program.workspace, program.run_manager, runs
        self._timer = Timer(self, self.look, LOOK_MS, repeats=True)
        self._run_manager.runs_changed.connect(self._on_runs)
        self._workspace.activated.connect(self._on_runs)

    @Slot()
    def _on_runs(self) -> None:
        run = self._workspace.run
        if run is not None and run.held:
            self._timer.start()
        else:
            self._timer.stop()

    @Slot()
    def look(self) -> None:
        """Allow the current run to be continued if no other window writes it any more.

        If the other window has added updates, the file is read again.
        """
        run = self._workspace.run
        if run is None or not run.release():
            return
        if _last(run) == run.head:
            self._run_manager.runs_changed.emit()
            self._workspace.request_frame()
        else:
            self._runs.open_path(run.path)
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
