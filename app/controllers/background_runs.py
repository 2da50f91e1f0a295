"""The controller of background runs: their folders, the offer to continue one at startup, and a message at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.controllers.program import Program
from app.jobs.queue import BackgroundQueue
from app.jobs.runner import Poll, Runner
from app.messages.message import BarAction, Severity
from app.panel_registry import QUEUE
from app.theme.file_dialogs import folder_to_use
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.queue import queue as runs
from grpo_core.runs.library import free_name
from grpo_core.text import tr

if TYPE_CHECKING:  # panels are imported only when they are created
    from app.experiments.queue import QueuePanel

MESSAGE = "queue"


class BackgroundRunsController(QObject):
    """Connects the panel of background runs, their process and the message bar."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._window, self._messages = program.window, program.messages
        self._folder = program.paths.data / "queues"
        self.background = BackgroundQueue(program.workspace.jobs, self)
        self.search = Runner(self, self._on_unfinished)
        self.background.finished.connect(self._on_finished)
        self.background.failed.connect(self._on_failed)

    def serve(self, panel: QueuePanel) -> None:
        """Show the queue in ``panel``, which has just been created, and carry out its requests."""
        panel.attach(self.background)
        panel.start_wanted.connect(self._on_start)

    @Slot()
    def offer(self) -> None:
        """Search in the background for the newest unfinished queue, and offer to continue it."""

        def newest_unfinished(poll: Poll) -> Iterator[object]:
            for folder in sorted((path.parent for path in self._folder.glob("*/queue.json")), reverse=True):
                poll()
                if runs.unfinished(folder):
                    yield folder
                    return

        self.search.start(newest_unfinished)

    def show(self) -> None:
        """Bring the panel to the front, with the keyboard focus in its form."""
        self._window.show_panel(QUEUE).focus_form()

    @Slot()
    def ask_open(self) -> None:
        title = tr("Open runs in the background")
        name = folder_to_use(self._window, title, str(self._folder))
        if name:
            self.open(Path(name))

    def open(self, folder: Path) -> None:
        """Show the queue in ``folder``, or report why it cannot be shown."""
        if self._messages.attempt(partial(self.background.show, folder)):
            self.show()

    @Slot(str, str)
    def suggest(self, path: str, values: str) -> None:
        """Show the panel with this setting and these values filled in."""
        self._window.panels.of(QUEUE).form.suggest(path, values)
        self.show()

    @Slot(object, object, int)
    def repeat(self, settings: Settings, seeds: Sequence[int], updates: int) -> None:
        """Train a language model in the background, once for each of ``seeds``, and show the panel."""
        self.show()
        try:
            queue = runs.planned(settings, {}, seeds, updates)
        except GrpoError as error:
            self._window.panels.of(QUEUE).form.refuse(str(error))
        else:
            self._on_start(queue)

    def close(self) -> None:
        self.search.close()
        self.background.close()

    @Slot(object)
    def _on_start(self, queue: runs.Queue) -> None:
        names = " ".join(path.rpartition(".")[2] for path in queue.axes)
        stem = f"{time.strftime('%Y-%m-%d %H.%M.%S')} {names}".rstrip()
        try:
            self.background.start(free_name(self._folder / stem, folder=True), queue)
        except GrpoError as error:
            self._window.panels.of(QUEUE).form.refuse(str(error))

    @Slot(object)
    def _on_unfinished(self, folder: Path) -> None:
        """Offer to continue the queue in ``folder`` unless another one is already shown."""
        if self.background.queue is not None:
            return
        resume = BarAction(text=tr("Resume"), run=partial(self._resume, folder))
        show = BarAction(text=tr("Show", "verb"), run=partial(self.open, folder))
        text = tr("Runs in the background are not finished: “{name}”.").format(name=folder.name)
        self._messages.say(text, Severity.INFO, resume, show, id=MESSAGE)

    def _resume(self, folder: Path) -> None:
        self.open(folder)
        if self.background.folder == folder:
            self._messages.attempt(self.background.resume)

    @Slot()
    def _on_finished(self) -> None:
        show = BarAction(text=tr("Show", "verb"), run=self.show)
        self._messages.say(tr("The runs in the background are done."), Severity.INFO, show, id=MESSAGE)

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._messages.say(sentence, Severity.ERROR)
