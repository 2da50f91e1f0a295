"""A queue of background runs in a separate process, and its progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.jobs.jobs import Jobs
from app.jobs.runner import CANCELLED, Poll, Runner
from grpo_core.errors import GrpoError
from grpo_core.queue import queue as runs
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.jobs.job_process import JobProcess

PATIENCE_MS = 2000
"""Milliseconds after which a process that was requested to stop is killed."""
CLOSING = 0.5
"""Seconds that a process has to end properly when the program closes."""
NICE = 10
"""Niceness of the process, which gives way to the window and to a live run."""


class QueueState(Enum):
    """State of the queue."""

    EMPTY = "empty"
    WORKING = "working"
    STOPPING = "stopping"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"


class BackgroundQueue(QObject):
    """One queue of runs, and the process that trains them.

    Attributes:
        elsewhere: whether the workers of a cluster train its runs.
        folder: folder of the queue; None if there is no queue.
        queue: the plan; None if there is no queue.
        place: index of the run being trained, or None.
        left: estimated seconds until all runs are done, at the pace so far; None if unknown.

    Signals:
        progress: emitted when the state or the progress changes.
        finished: emitted when all runs are done.
        failed: emitted with a sentence that says why the queue cannot continue.
    """

    progress = Signal()
    finished = Signal()
    failed = Signal(str)

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        """Create an empty queue. Each time it is started, its runs are trained where ``jobs`` are computed."""
        super().__init__(parent)
        self._jobs = jobs
        self.elsewhere = False
        self.state = QueueState.EMPTY
        self.folder: Path | None = None
        self.queue: runs.Queue | None = None
        self.statuses: list[runs.RunStatus] = []
        self.place: int | None = None
        self.left: float | None = None
        self._process: JobProcess | None = None
        self._ready = False  # the process works on the queue, and notices within one token when it is asked to stop
        self._cancelling = False
        # waits for the process or, if there is none, reads the runs' files
        self._runner = Runner(self, self._on_message, self._on_ended)
        self._patience = Timer(self, self._rest, PATIENCE_MS)

    @property
    def reading(self) -> bool:
        """Whether the progress of the runs is still being read from their files."""
        return self._process is None and self._runner.busy

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def loading(self) -> bool:
        """Whether the process is still starting, which takes a few seconds."""
        return self._process is not None and not self._ready

    def left_of(self, place: int) -> float | None:
        """Return the estimated seconds of work left for the run at index ``place``, or None if unknown."""
        assert self.queue is not None
        todo = [0 if one.finished(self.queue) else self.queue.updates - one.done for one in self.statuses]
        return None if self.left is None or not sum(todo) else self.left * todo[place] / sum(todo)

    # -- commands ----------------------------------------------------------------------------------------------------

    def start(self, folder: Path, queue: runs.Queue) -> None:
        """Train ``queue`` in ``folder``.

        Raises:
            GrpoError: another queue is being trained, or the folder cannot be written.
        """
        self._must_be_still()
        self._take(folder, runs.begin(folder, queue))
        self.resume()

    def show(self, folder: Path) -> None:
        """Read the queue in ``folder`` and list its runs, without training them.

        Raises:
            GrpoError: there is no queue, or another one is being trained.
        """
        self._must_be_still()
        self._take(folder, runs.read(folder))
        self._read()

    def resume(self) -> None:
        """Continue with the unfinished runs.

        Raises:
            GrpoError: the folder cannot be written, or no process can be started.
        """
        from app.jobs.job_process import JobProcess

        if self._process is not None or self.folder is None or self.queue is None:
            return
        self._runner.close()  # reading a file could be mistaken for another program writing it
        self.queue = runs.begin(self.folder, self.queue)
        where = self._jobs.cluster
        lost = tr(
            "The process for runs in the background has ended unexpectedly ({how}). Every finished update is in the "
            "runs' files; press Resume to go on."
        )
        process, asked = JobProcess(lost, NICE), ("queue", str(self.folder))
        self._process, self._ready, self._cancelling, self.elsewhere = process, False, False, where is not None
        job, *arguments = asked if where is None else ("cluster", where, *asked)
        self._runner.start(lambda poll: process.results(job, arguments, poll))
        self._enter(QueueState.WORKING)

    def pause(self) -> None:
        """Cancel the update in progress, and end the process. All finished updates are on disk."""
        if self._process is None:
            return
        if self.loading:  # it is not listening yet, and has begun nothing
            self._rest()
        elif self.state is QueueState.WORKING:
            self._process.cancel()
            self._patience.start()
            self._enter(QueueState.STOPPING)

    def cancel(self) -> None:
        """Cancel the rest of the queue. Finished work is kept, and ``resume`` continues the queue."""
        self._cancelling = self.folder is not None
        if self._process is not None:
            self.pause()
        else:
            self._rest()

    def close(self) -> None:
        """End the process at once, because the program closes. The queue can be continued later."""
        if self._process is None:
            self._runner.close()
        else:
            self._runner.close(CLOSING if self._ready else 0)
            self._end_process()

    def _end_process(self) -> None:
        self._patience.stop()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._runner.close()
            process.close()

    # -- messages from the process, and from the reader of the files -------------------------------------------------

    @Slot(object)
    def _on_message(self, message: runs.Progress) -> None:
        place, status, left = message
        self._ready = True
        if left is not None:
            self.place, self.left = place, left
            status = replace(status, note=status.note or self.statuses[place].note)
        self.statuses[place] = status
        self.progress.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        worked = self._process is not None
        if sentence:
            if worked:
                self._rest()
            if sentence != CANCELLED:
                self.failed.emit(sentence)
        elif self.queue is not None and (worked or all(one.finished(self.queue) for one in self.statuses)):
            self._end_process()
            self.place = self.left = None
            self._enter(QueueState.DONE)
            if worked:
                self.finished.emit()

    @Slot()
    def _rest(self) -> None:
        """Record that the process works on the queue no longer, although some runs are not finished."""
        self._end_process()
        if self._cancelling and self.folder is not None:
            with suppress(GrpoError):
                runs.end(self.folder)
        self.place = self.left = None
        self._enter(QueueState.CANCELLED if self._cancelling else QueueState.PAUSED)
        self._read()

    def _read(self) -> None:
        folder, queue = self.folder, self.queue
        if folder is None or queue is None:
            return

        def read(poll: Poll) -> Iterator[object]:
            for place, run in enumerate(queue.runs):
                poll()
                yield place, runs.run_status(folder, run), None

        self._runner.start(read)

    def _take(self, folder: Path, queue: runs.Queue) -> None:
        self._runner.close()
        self.folder, self.queue, self.statuses = folder, queue, [runs.RunStatus() for _ in queue.runs]
        self.place = self.left = None
        self._enter(QueueState.CANCELLED if queue.ended else QueueState.PAUSED)

    def _must_be_still(self) -> None:
        if self._process is not None:
            raise GrpoError(
                tr("Runs are already being trained in the background; wait for them, or cancel them first.")
            )

    def _enter(self, state: QueueState) -> None:
        self.state = state
        self.progress.emit()
