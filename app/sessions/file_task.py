"""Work on files that would keep the window waiting, done one at a time in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from PySide6.QtCore import QObject, QThread, QTimer, Signal, Slot

from app.messages.message import BarAction, Message, Severity
from app.messages.message_bar import MessageBar
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.text import tr

PATIENCE_MS = 300
"""Nothing is said of a wait that is shorter."""

Work: TypeAlias = Callable[[Callable[[], bool]], object]
"""Does the work; polls the function that it is given and raises ``Cancelled`` when that turns true."""


class FileTask(QThread):
    """Runs ``work`` once: a thread that is asked to stop, never killed.

    Signals:
        done: what it returned.
        failed: why it did not come to an end, in a sentence; empty when it was cancelled.
    """

    done = Signal(object)
    failed = Signal(str)

    def __init__(self, work: Work, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work = work

    def run(self) -> None:
        try:
            result = self._work(self.isInterruptionRequested)
        except Cancelled:
            self.failed.emit("")
        except GrpoError as error:
            self.failed.emit(str(error))
        except OSError as error:
            self.failed.emit(tr("The file could not be reached: {strerror}.").format(strerror=error.strerror or error))
        else:
            self.done.emit(result)

    def cancel(self) -> None:
        """Ask it to stop; ``failed`` follows unless it is done already."""
        self.requestInterruption()


class FileTasks(QObject):
    """Runs one task at a time; where it takes long, the message bar says so and offers to cancel it.

    Args:
        message: id of the message about a task that is at work.
        abandon: a task that the user cancels is given up at once and without a word, instead of when it hears of it.

    Signals:
        ended: the task is over, whatever became of it.
    """

    ended = Signal()

    def __init__(
        self, messages: MessageBar, message: str, parent: QObject | None = None, *, abandon: bool = False
    ) -> None:
        super().__init__(parent)
        self._messages, self._message, self._abandon = messages, message, abandon
        self._task: FileTask | None = None
        self._finish: Callable[[Any], object] | None = None
        self._title = ""
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(PATIENCE_MS)
        self._patience.timeout.connect(self.say_at_work)

    @property
    def busy(self) -> bool:
        """Whether a task is at work."""
        return self._task is not None

    def start(self, title: str, work: Work, finish: Callable[[Any], object]) -> bool:
        """Begin ``work``, called ``title``; ``finish`` takes its result.

        While another task is at work nothing begins: the message bar says so, and this returns False.
        """
        if self._task is not None:
            self._messages.say(tr("{doing} is not finished yet; try again then.").format(doing=self._title))
            return False
        self._title, self._finish = title, finish
        self._task = FileTask(work, self)
        self._task.done.connect(self._on_done)
        self._task.failed.connect(self._on_failed)
        self._patience.start()
        self._task.start()
        return True

    @Slot()
    def say_at_work(self) -> None:
        """Say that the task is at work, with a button that cancels it."""
        stop = self.close if self._abandon else self.cancel
        cancel = BarAction(text=tr("Cancel"), run=stop, closes=False)
        text = tr("{doing} …").format(doing=self._title)
        self._messages.post(Message(text=text, severity=Severity.INFO, actions=(cancel,), id=self._message))

    def cancel(self) -> None:
        """Give up what is being written or read; nothing of it is left."""
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Give up at once what is half done; it leaves nothing, and nothing follows."""
        if self._task is not None:
            self._task.done.disconnect(self._on_done)
            self._task.failed.disconnect(self._on_failed)
            self._task.cancel()
            self._clear()

    @Slot(object)
    def _on_done(self, result: object) -> None:
        finish = self._finish
        if finish is None:  # it was closed while this was on its way
            return
        self._clear()
        finish(result)
        self.ended.emit()

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        if self._finish is None:
            return
        self._clear()
        if sentence:
            self._messages.say(sentence, Severity.ERROR)
        else:
            self._messages.say(tr("{doing} was cancelled.").format(doing=self._title), Severity.INFO)
        self.ended.emit()

    def _clear(self) -> None:
        self._patience.stop()
        self._messages.remove(self._message)
        self._finish = None
        if self._task is not None:
            self._task.wait()
            self._task.deleteLater()
            self._task = None
