"""Background work on files that would block the window, one task at a time in a separate thread.

A disk or a network drive may not respond at all, and a thread that waits for it cannot be ended. A cancelled task
that does not react is therefore abandoned after a few seconds, and the program does not wait for it when it ends.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.messages.message import BarAction, Message, Severity
from app.messages.message_bar import MessageBar
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.text import tr

PATIENCE_MS = 300
"""Milliseconds after which a task that is still running is reported to the user."""
PROGRESS_MS = 500
"""Milliseconds between two updates of the displayed progress."""
DEAF_MS = 5000
"""Milliseconds within which a cancelled task must react before it is abandoned."""


class TaskPoll(threading.Event):
    """The argument passed to a task, set when the task is cancelled. Calling it returns whether it is set.

    Attributes:
        fraction: completed fraction of the task, from 0 to 1; None if unknown.
    """

    fraction: float | None = None
    __call__ = threading.Event.is_set

    def tell(self, fraction: float) -> None:
        self.fraction = fraction


Work: TypeAlias = Callable[[TaskPoll], object]
"""A function that does the work. It calls its argument regularly, and raises ``Cancelled`` when that returns True."""


class FileTask(QObject):
    """Runs ``work`` once, in a thread that is requested to stop, never killed.

    Signals:
        failed: emitted with an error message, which is empty if the task was cancelled.
    """

    done = Signal(object)
    failed = Signal(str)

    def __init__(self, work: Work, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.poll = TaskPoll()
        self._work = work
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the task. ``failed`` is emitted unless the task has already finished."""
        self.poll.set()

    def leave(self) -> None:
        """Cancel the task without waiting for it, and block its signals.

        The thread keeps the object alive until it ends.
        """
        self.cancel()
        self.blockSignals(True)
        self.setParent(None)

    def wait(self, seconds: float = DEAF_MS / 1000) -> bool:
        """Wait at most ``seconds`` for the end of the thread. Return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with suppress(RuntimeError):  # the window that would receive it is gone, as at the end of the program
            try:
                result = self._work(self.poll)
            except Cancelled:
                self.failed.emit("")
            except GrpoError as error:
                self.failed.emit(str(error))
            except OSError as error:
                sentence = tr("The file could not be reached: {strerror}.")
                self.failed.emit(sentence.format(strerror=error.strerror or error))
            except BaseException:
                self.failed.emit(tr("The work on the file was stopped by an unexpected error."))
                raise
            else:
                self.done.emit(result)


class FileTasks(QObject):
    """Runs one task at a time. If it takes a long time, a message says so and offers to cancel it.

    Args:
        abandon: whether a task cancelled by the user is abandoned at once and silently, rather than when it reacts.
    """

    ended = Signal()  # a task is over, whether or not it succeeded

    def __init__(
        self, messages: MessageBar, message: str, parent: QObject | None = None, *, abandon: bool = False
    ) -> None:
        super().__init__(parent)
        self._messages, self._message, self._abandon = messages, message, abandon
        self._task: FileTask | None = None
        self._finish: Callable[[Any], object] | None = None
        self._title = ""
        self._waiting = deque[Callable[[], object]]()
        self.ended.connect(self._begin_next)
        self._patience = Timer(self, self.say_at_work, repeats=True)
        self._deaf = Timer(self, self._on_deaf)

    @property
    def busy(self) -> bool:
        return self._task is not None

    def when_idle(self, begin: Callable[[], object]) -> None:
        """Call ``begin``, which can start a task, as soon as no other task is running, in the order of the calls."""
        self._waiting.append(begin)
        self._begin_next()

    @Slot()
    def _begin_next(self) -> None:
        while self._waiting and self._task is None:
            self._waiting.popleft()()

    def start(self, title: str, work: Work, finish: Callable[[Any], object]) -> bool:
        """Start ``work``, which messages call ``title``. ``finish`` receives its result.

        If another task is running, nothing is started; the message bar reports that, and the result is False.
        """
        if self._task is not None:
            self._messages.say(tr("{doing} is not finished yet; try again when it is.").format(doing=self._title))
            return False
        self._title, self._finish = title, finish
        self._task = FileTask(work, self)
        self._task.done.connect(self._on_done)
        self._task.failed.connect(self._on_failed)
        self._patience.start(PATIENCE_MS)
        self._task.start()
        return True

    @Slot()
    def say_at_work(self) -> None:
        """Show that the task is running, with its progress and a button that cancels it."""
        task = self._task
        if task is None:
            return
        if self._patience.isActive():
            self._patience.setInterval(PROGRESS_MS)
        stop = self.close if self._abandon else self.cancel
        cancel = BarAction(text=tr("Cancel"), run=stop, closes=False)
        if task.poll():
            text = tr("{doing} is being cancelled …").format(doing=self._title)
        elif task.poll.fraction is None:
            text = tr("{doing} …").format(doing=self._title)
        else:
            text = tr("{doing}: {percent:.0f}% …").format(doing=self._title, percent=100 * task.poll.fraction)
        self._messages.post(Message(text=text, severity=Severity.INFO, actions=(cancel,), id=self._message))

    def cancel(self) -> None:
        """Cancel the current task, which leaves nothing half-done behind."""
        if self._task is not None:
            self._task.cancel()
            if not self._deaf.isActive():
                self._deaf.start(DEAF_MS)

    def close(self) -> None:
        """Cancel the current task at once, and forget those that wait.

        It leaves nothing half-done behind, and no signal is emitted afterwards.
        """
        self._waiting.clear()
        if self._task is not None:
            task = self._detached()
            if not self._abandon:
                task.wait()

    @Slot()
    def _on_deaf(self) -> None:
        """Abandon a task that does not react to cancellation, perhaps because a disk does not respond."""
        if self._task is None:
            return
        self._detached()
        sentence = tr(
            "{doing} was cancelled. It did not react for {seconds:g} seconds and was abandoned; perhaps "
            "the disk does not answer."
        )
        self._messages.say(sentence.format(doing=self._title, seconds=DEAF_MS / 1000))
        self.ended.emit()

    def _detached(self) -> FileTask:
        """Disconnect and return the current task. It is kept until its thread has ended, however long that takes."""
        task = self._task
        assert task is not None
        task.done.disconnect(self._on_done)
        task.failed.disconnect(self._on_failed)
        task.cancel()
        self._forget()
        return task

    @Slot(object)
    def _on_done(self, result: object) -> None:
        finish = self._finish
        if finish is None:  # it was closed while this signal was pending
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
        task = self._task
        self._forget()
        if task is not None and task.wait():
            task.deleteLater()

    def _forget(self) -> None:
        self._patience.stop()
        self._deaf.stop()
        self._messages.remove(self._message)
        self._finish = self._task = None
