"""What the window does about runs in the background: where they lie, what is told of them, what a start offers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.experiments.queue import Background
from app.experiments.runner import Poll, Runner
from app.messages.message_bar import BarAction, Message, MessageBar, Severity
from app.panels.queue import QueuePanel
from grpo_core.errors import GrpoError
from grpo_core.experiments import queue as runs
from grpo_core.text import tr

MESSAGE = "queue"


class Queues(QObject):
    """Between the panel, the process and the message bar.

    Args:
        folder: below which each queue has a folder of its own.
        say: tells the user a sentence of a severity.
        show: brings the panel to the front.
        open_run: opens a run file.

    Attributes:
        background: the queue that is shown, and its process.
    """

    def __init__(
        self,
        panel: QueuePanel,
        folder: Path,
        messages: MessageBar,
        say: Callable[[str, str], None],
        show: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._panel, self._folder, self._messages = panel, folder, messages
        self._say, self._show = say, show
        self.background = Background(self)
        self._looking = Runner(self)
        self._looking.arrived.connect(self._on_found)
        panel.attach(self.background)
        panel.start_wanted.connect(self._on_start)
        self.background.finished.connect(self._on_finished)
        self.background.failed.connect(self._on_failed)

    @Slot()
    def offer(self) -> None:
        """Look, beside the window, for the newest queue that is not finished, and offer to go on with it."""
        folders = sorted((path.parent for path in self._folder.glob("*/queue.json")), reverse=True)

        def found(poll: Poll) -> Iterator[object]:
            for folder in folders:
                poll()
                if runs.unfinished(folder):
                    yield folder
                    return

        self._looking.start(found)

    def open(self, folder: Path) -> None:
        """Show the queue in ``folder``, or say why it cannot be shown."""
        try:
            self.background.show(folder)
        except GrpoError as error:
            self._say(str(error), "error")
        else:
            self._show()

    @Slot(str, str)
    def suggest(self, path: str, values: str) -> None:
        """Show the panel with a setting and its values filled in."""
        self._panel.form.suggest(path, values)
        self._show()

    def close(self) -> None:
        """The program ends."""
        self._looking.close()
        self.background.close()

    @Slot(object)
    def _on_start(self, queue: runs.Queue) -> None:
        names = " ".join(path.rpartition(".")[2] for path in queue.axes)
        stem = f"{time.strftime('%Y-%m-%d %H.%M.%S')} {names}"
        folder, count = self._folder / stem, 1
        while folder.exists():
            count += 1
            folder = self._folder / f"{stem} {count}"
        try:
            self.background.start(folder, queue)
        except GrpoError as error:
            self._panel.form.refuse(str(error))

    @Slot(object)
    def _on_found(self, folder: Path) -> None:
        """Offer it, unless another one is shown by now."""
        if self.background.queue is not None:
            return
        go_on = BarAction(text=tr("Resume"), run=partial(self._resume, folder))
        show = BarAction(text=tr("Show"), run=partial(self.open, folder))
        text = tr("Runs in the background are not finished: “{name}”.").format(name=folder.name)
        self._messages.post(Message(text=text, severity=Severity.INFO, actions=(go_on, show), id=MESSAGE))

    def _resume(self, folder: Path) -> None:
        self.open(folder)
        if self.background.folder == folder:
            try:
                self.background.resume()
            except GrpoError as error:
                self._say(str(error), "error")

    @Slot()
    def _on_finished(self) -> None:
        show = BarAction(text=tr("Show"), run=self._show)
        text = tr("The runs in the background are done.")
        self._messages.post(Message(text=text, severity=Severity.INFO, actions=(show,), id=MESSAGE))

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._say(sentence, "error")
