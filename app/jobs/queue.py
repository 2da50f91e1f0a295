"""A queue of background runs in a separate process, and its progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.jobs.computed_on import ComputedOn
from app.jobs.runner import Poll, Runner
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.queue import queue as runs
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.jobs.job_process import JobProcess

BEAT_MS = 50
"""Milliseconds between two checks for messages from the process."""
PATIENCE = 40
"""Number of checks after which a process that was requested to stop is killed."""
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
        state: state of the queue.
        folder: folder of the queue; None if there is no queue.
        queue: the plan; None if there is no queue.
        statuses: progress of each of its runs.
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

    def __init__(self, computed_on: ComputedOn, parent: QObject | None = None) -> None:
        """Create an empty queue. Each time the queue is started, ``computed_on`` determines where its runs are
        trained.
        """
        super().__init__(parent)
        self._computed_on = computed_on
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
        self._waited = 0
        self._reader = Runner(self)
        self._reader.arrived.connect(self._on_read)
        self._reader.ended.connect(self._on_all_read)
        self._beat = Timer(self, self._on_beat, BEAT_MS, repeats=True)

    @property
    def reading(self) -> bool:
        """Whether the progress of the runs is still being read from their files."""
        return self._reader.busy

    @property
    def pid(self) -> int | None:
        """The ID of the process, or None if there is no process."""
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
            GrpoError: the folder cannot be written.
        """
        if self._process is not None or self.folder is None or self.queue is None:
            return
        self._reader.close()  # reading a file could be mistaken for another program writing it
        self.queue = runs.begin(self.folder, self.queue)
        where = self._computed_on.cluster
        self._process, self._ready, self._cancelling = _started(self.folder, where), False, False
        self.elsewhere = where is not None
        self._beat.start()
        self._enter(QueueState.WORKING)

    def pause(self) -> None:
        """Cancel the update in progress, and end the process. All finished updates are on disk."""
        if self._process is None:
            return
        if self.loading:  # it is not listening yet, and has begun nothing
            self._rest()
        elif self.state is QueueState.WORKING:
            self._waited = 0
            self._process.cancel()
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
        self._reader.close()
        self._beat.stop()
        process, self._process = self._process, None
        if process is not None:
            if self._ready:
                process.give_up(CLOSING)
            process.kill()
            process.close()

    # -- messages from the process -------------------------------------------------------------------------------------

    @Slot()
    def _on_beat(self) -> None:
        """Handle the messages of the process since the last check."""
        heard = False
        try:
            if self._process is not None:
                for message in self._process.heard():
                    self._hear(message)
                    heard = True
                if not self._process.busy:
                    self._rest(done=True)
        except Cancelled:
            self._rest()
        except GrpoError as error:
            self._rest()
            self.failed.emit(str(error))
        if self.state is QueueState.STOPPING:
            self._waited += 1
            if self._waited > PATIENCE:
                self._rest()
        if heard:
            self.progress.emit()

    def _hear(self, message: tuple[int, dict[str, Any], float | None] | None) -> None:
        """Handle one of the :func:`grpo_core.queue.queue.messages`."""
        if message is None:
            self._ready = True
            return
        place, status, left = message
        self.statuses[place] = runs.RunStatus(**status)
        if left is not None:
            self.place, self.left = place, left

    def _rest(self, *, done: bool = False) -> None:
        """Record that no process works on the queue any more."""
        self._beat.stop()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.close()
        self.place = self.left = None
        if done:
            self._enter(QueueState.DONE)
            self.finished.emit()
            return
        if self._cancelling and self.folder is not None:
            with suppress(GrpoError):
                runs.end(self.folder)
        self._enter(QueueState.CANCELLED if self._cancelling else QueueState.PAUSED)
        self._read()

    # -- the runs' files -----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read the progress of each run in the background."""
        folder, queue = self.folder, self.queue
        if folder is None or queue is None:
            return

        def read(poll: Poll) -> Iterator[object]:
            for place, run in enumerate(queue.runs):
                poll()
                yield place, runs.run_status(folder, run)

        self._reader.start(read)

    @Slot(object)
    def _on_read(self, read: tuple[int, runs.RunStatus]) -> None:
        place, self.statuses[place] = read[0], read[1]
        self.progress.emit()

    @Slot(str)
    def _on_all_read(self, sentence: str) -> None:
        if sentence:
            self.failed.emit(sentence)
        elif self.queue is not None and all(one.finished(self.queue) for one in self.statuses):
            self._enter(QueueState.DONE)

    def _take(self, folder: Path, queue: runs.Queue) -> None:
        """Show another queue instead of the current one."""
        self._reader.close()
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


def _started(folder: Path, where: str | None) -> JobProcess:
    """Return a process that trains the runs of the queue in ``folder``, on the cluster ``where`` if given.

    Raises:
        GrpoError: it cannot be started.
    """
    lost = tr(
        "The process for runs in the background has ended unexpectedly ({how}). Every finished update is in the "
        "runs' files; press Resume to go on."
    )
    from app.jobs.job_process import JobProcess

    process = JobProcess(lost, NICE)
    if where is None:
        process.ask("queue", [str(folder)])
    else:
        process.ask("cluster", [where, "queue", str(folder)])
    return process
