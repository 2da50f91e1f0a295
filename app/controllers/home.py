"""Reads the runs listed on Home in the background, because they may be on a slow disk."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.controllers.runs import RunsController
from app.panels.home.panel import RunsPanel
from app.panels.home.previews import Preview, examples, last_runs
from app.sessions.file_task import FileTask, TaskPoll


class HomeRuns(QObject):
    """Rereads the runs whenever the panel comes to the front."""

    def __init__(self, runs: RunsController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runs = runs
        self._panel: RunsPanel | None = None
        self._task: FileTask | None = None

    def serve(self, panel: RunsPanel) -> None:
        """Show the runs in ``panel`` from now on, and carry out its requests."""
        self._panel = panel
        panel.came_to_front.connect(self._read)
        panel.run_wanted.connect(self._runs.open_path)
        if panel.seen:
            self._read()

    @Slot()
    def _read(self) -> None:
        if self._task is None:
            self._task = FileTask(partial(_previews, self._runs.folder), self)
            self._task.done.connect(self._on_read)
            self._task.failed.connect(self._on_failed)
            self._task.start()

    @Slot(object)
    def _on_read(self, found: tuple[list[Preview], list[Preview]]) -> None:
        self._task = None
        if self._panel is not None:
            self._panel.show_runs(*found)

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._task = None
        if self._panel is not None and sentence:
            self._panel.none.setText(sentence)


def _previews(folder: Path, poll: TaskPoll) -> tuple[list[Preview], list[Preview]]:
    return last_runs(folder, poll), examples()
