"""Background work on files that would block the window, one task at a time in a separate thread.

A disk or a network drive may not respond at all, and a thread that waits for it cannot be ended. A cancelled task
that does not react is therefore abandoned after a few seconds, and the program does not wait for it when it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.jobs.runner import CANCELLED, DEAF_SECONDS, FILE_FAILED, Poll, Runner
from app.messages.message import BarAction, Severity
from app.messages.message_bar import MessageBar
from grpo_core.text import tr

PATIENCE_MS = 300
"""Milliseconds after which a task that is still running is reported to the user."""
PROGRESS_MS = 500
"""Milliseconds between two updates of the displayed progress."""
DEAF_MS = round(1000 * DEAF_SECONDS)
"""Milliseconds within which a cancelled task must react before it is abandoned."""


Work: TypeAlias = Callable[[Poll], object]
"""A function that does the work. It calls its argument regularly."""


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
        self._runner = Runner(self, self._on_arrived, self._on_ended)
        self._runner.failed = FILE_FAILED
        self._finish: Callable[[Any], object]
        self._results: list[object] = []  # none, or that of the work
        self._title = ""
        self._waiting = deque[Callable[[], object]]()
        self.ended.connect(self._begin_next)
        self._patience = Timer(self, self.say_at_work, repeats=True)
        self._deaf = Timer(self, self._on_deaf)

    @property
    def busy(self) -> bool:
        return self._runner.busy

    def when_idle(self, begin: Callable[[], object]) -> None:
        """Call ``begin``, which can start a task, as soon as no other task is running, in the order of the calls."""
        self._waiting.append(begin)
        self._begin_next()

    @Slot()
    def _begin_next(self) -> None:
        while self._waiting and not self.busy:
            self._waiting.popleft()()

    def start(self, title: str, work: Work, finish: Callable[[Any], object]) -> bool:
        """Start ``work``, which messages call ``title``. ``finish`` receives its result.

        If another task is running, nothing is started; the message bar reports that, and the result is False.
        """
        if self.busy:
            self._messages.say(tr("{doing} is not finished yet; try again when it is.").format(doing=self._title))
            return False
        self._title, self._finish = title, finish
        self._patience.start(PATIENCE_MS)
        self._runner.start(lambda poll: iter([work(poll)]))
        return True

    @Slot()
    def say_at_work(self) -> None:
        """Show that the task is running, with its progress and a button that cancels it."""
        poll = self._runner.poll
        if poll is None:
            return
        if self._patience.isActive():
            self._patience.setInterval(PROGRESS_MS)
        stop = self.close if self._abandon else self.cancel
        cancel = BarAction(text=tr("Cancel"), run=stop, closes=False)
        if poll.stopped:
            text = tr("{doing} is being cancelled …").format(doing=self._title)
        elif poll.fraction is None:
            text = tr("{doing} …").format(doing=self._title)
        else:
            text = tr("{doing}: {percent:.0f}% …").format(doing=self._title, percent=100 * poll.fraction)
        self._messages.say(text, Severity.INFO, cancel, id=self._message)

    def cancel(self) -> None:
        """Cancel the current task, which leaves nothing half-done behind."""
        if self._runner.poll is not None:
            self._runner.poll.stopped = True
            if not self._deaf.isActive():
                self._deaf.start(DEAF_MS)

    def close(self) -> None:
        """Cancel the current task at once, and forget those that wait.

        It leaves nothing half-done behind, and no signal is emitted afterwards.
        """
        self._waiting.clear()
        if self.busy:
            self._forget()
            if self._abandon:
                self._runner.leave()
            else:
                self._runner.close()

    @Slot()
    def _on_deaf(self) -> None:
        """Abandon a task that does not react to cancellation, perhaps because a disk does not respond."""
        if not self.busy:
            return
        self._runner.leave()
        self._forget()
        sentence = tr(
            "{doing} was cancelled. It did not react for {seconds:g} seconds and was abandoned; perhaps "
            "the disk does not answer."
        )
        self._messages.say(sentence.format(doing=self._title, seconds=DEAF_MS / 1000))
        self.ended.emit()

    @Slot(object)
    def _on_arrived(self, result: object) -> None:
        self._results = [result]

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        results = self._results
        self._forget()
        if results:  # even if it was cancelled too late
            self._finish(results[0])
        elif sentence == CANCELLED:
            self._messages.say(tr("{doing} was cancelled.").format(doing=self._title), Severity.INFO)
        else:
            self._messages.say(sentence, Severity.ERROR)
        self.ended.emit()

    def _forget(self) -> None:
        self._patience.stop()
        self._deaf.stop()
        self._messages.remove(self._message)
        self._results = []
