"""Experiments beside the window: many runs computed in a thread, their results as they come, cancelled at any time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from threading import Event, Thread

from PySide6.QtCore import QObject, Qt, Signal, Slot

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.text import tr

Poll = Callable[[], None]
Make = Callable[[Poll], Iterator[object]]
"""Makes the results of an experiment one after the other, and polls every few milliseconds."""
CANCELLED = tr("Cancelled; what was done stays.")
DEAF_SECONDS = 5.0
"""Within that time an experiment has to hear that it was given up; one that reads from a disk that does not answer
never does, and is left behind."""


class _Job:
    """One experiment, until it has ended or is given up."""

    def __init__(self, make: Make) -> None:
        self.make = make
        self.given_up = Event()

    def poll(self) -> None:
        """Raise ``Cancelled`` where nobody waits for the results any more."""
        if self.given_up.is_set():
            raise Cancelled(tr("The experiment was cancelled."))


class Runner(QObject):
    """Computes one experiment at a time. The latest that was started is the one that counts.

    Attributes:
        busy: whether an experiment is being computed.

    Signals:
        arrived: the next result, in order.
        ended: the experiment is over: nothing where all results have come, otherwise a sentence why they have not.
    """

    arrived = Signal(object)
    ended = Signal(str)
    _result_ready = Signal(object, object)
    _over = Signal(object, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._job: _Job | None = None
        self._thread: Thread | None = None
        self._result_ready.connect(self._on_result_ready, Qt.ConnectionType.QueuedConnection)
        self._over.connect(self._on_over, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Whether results are still to come."""
        return self._job is not None

    def start(self, make: Make) -> None:
        """Compute what ``make`` yields. An experiment that is still being computed is given up."""
        self._give_up()
        job = self._job = _Job(make)
        self._thread = Thread(target=self._compute, args=(job,), name="experiment", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Give the experiment up. What has arrived stays."""
        if self._give_up():
            self.ended.emit(CANCELLED)

    def leave(self) -> None:
        """Give up, and do not wait for the thread: what it reads may lie on a disk that does not answer."""
        self._give_up()

    def close(self) -> None:
        """Give up, and wait for the thread as long as one that hears of it needs."""
        self._give_up()
        if self._thread is not None:
            self._thread.join(DEAF_SECONDS)

    def _give_up(self) -> bool:
        job, self._job = self._job, None
        if job is not None:
            job.given_up.set()
        return job is not None

    def _compute(self, job: _Job) -> None:
        sentence = tr("The experiment failed; what was done stays.")
        try:
            for result in job.make(job.poll):
                job.poll()
                try:
                    self._result_ready.emit(job, result)
                except RuntimeError:  # a window that was not closed but deleted listens no more
                    return
            sentence = ""
        except Cancelled:
            pass
        except GrpoError as error:
            sentence = str(error)
        finally:
            if not job.given_up.is_set():
                with contextlib.suppress(RuntimeError):  # a window that was not closed but deleted listens no more
                    self._over.emit(job, sentence)

    @Slot(object, object)
    def _on_result_ready(self, job: _Job, result: object) -> None:
        if job is self._job:
            self.arrived.emit(result)

    @Slot(object, str)
    def _on_over(self, job: _Job, sentence: str) -> None:
        if job is self._job:
            self._job = None
            self.ended.emit(sentence)
