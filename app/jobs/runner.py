"""Experiments, and work on files, in a background thread.

Results arrive as they are computed, and the computation can be cancelled at any time.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any, ClassVar
from weakref import ref

from PySide6.QtCore import QObject, Qt, Signal, Slot
from shiboken6 import isValid

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.text import tr

CANCELLED = tr("Cancelled; what was done is kept.")
FILE_FAILED = tr("The work on the file was stopped by an unexpected error.")
DEAF_SECONDS = 5.0
"""Seconds within which a cancelled computation must react.

One that reads from an unresponsive disk never reacts, and is abandoned.
"""
EXIT_SECONDS = 1.0
"""Seconds within which each computation must react when the process ends."""


class Poll:
    """The argument of a computation, which calls it every few milliseconds, perhaps with the finished fraction.

    Attributes:
        stopped: whether the computation is to end.
        fraction: completed fraction of the work, from 0 to 1; None if unknown.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.fraction: float | None = None

    def __call__(self, fraction: float | None = None) -> None:
        """Raise :class:`Cancelled` if the computation is to end."""
        if fraction is not None:
            self.fraction = fraction
        if self.stopped:
            raise Cancelled(tr("The experiment was cancelled."))


Make = Callable[[Poll], Iterator[object]]
"""A function that yields the results of a computation one by one."""
Receiver = Callable[[Any], object]


class _Computation(QObject):
    """One computation in a thread of its own.

    If the thread dropped the last reference to a QObject while Qt deletes it, or emitted a signal of one that Qt
    deletes, the process would end with a segmentation fault. So this object, which emits the signal, has no parent, and
    is kept, with everything that ``make`` refers to, until the thread has ended.
    """

    told = Signal(object, object, bool)
    _kept: ClassVar[set[_Computation]] = set()

    def __init__(self, runner: Runner, make: Make, failed: str) -> None:
        super().__init__()
        self._runner, self.poll = ref(runner), Poll()
        self._make, self._failed = make, failed
        self._thread = Thread(target=self._compute, name="experiment", daemon=True)
        self.told.connect(self._on_told, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        self._kept.add(self)
        self._thread.start()

    def wait(self, patience: float) -> None:
        self._thread.join(patience)

    @classmethod
    def end_all(cls) -> None:
        """End all computations before the interpreter deletes Qt's objects, which they would still use."""
        for one in cls._kept:
            one.poll.stopped = True
        for one in cls._kept:
            one.wait(EXIT_SECONDS)

    def _compute(self) -> None:
        sentence = self._failed
        try:
            for result in self._make(self.poll):
                self.told.emit(self.poll, result, False)
                self.poll()
            sentence = ""
        except Cancelled:
            sentence = CANCELLED
        except GrpoError as error:
            sentence = str(error)
        except OSError as error:
            sentence = tr("The file could not be reached: {strerror}.").format(strerror=error.strerror or error)
        finally:
            self.told.emit(self.poll, sentence, True)

    @Slot(object, object, bool)
    def _on_told(self, poll: Poll, content: object, over: bool) -> None:
        runner = self._runner()
        if runner is None or not isValid(runner):  # it was deleted with a window that had not been closed
            self.poll.stopped = True
        if over:
            self._thread.join()  # it has nothing left to do
            del self._make  # a runner keeps its last computation, but not what that held
            self._kept.discard(self)


atexit.register(_Computation.end_all)


class Runner(QObject):
    """Runs one computation at a time. Starting another one replaces it.

    Attributes:
        poll: the argument of the current computation; None if there is none. One that sets ``stopped`` waits for
            ``ended``: the computation leaves nothing half-done behind.
        failed: the message about an unexpected error.

    Signals:
        arrived: emitted with the next result, in order.
        ended: emitted when the computation is over, with an empty string if it is complete, otherwise with a sentence
            that says why results are missing.
    """

    arrived = Signal(object)
    ended = Signal(str)
    failed = tr("The experiment failed; what was done is kept.")

    def __init__(
        self, parent: QObject | None = None, on_arrived: Receiver | None = None, on_ended: Receiver | None = None
    ) -> None:
        """Create a runner, and connect its signals to methods of QObjects."""
        super().__init__(parent)
        if on_arrived is not None:
            self.arrived.connect(on_arrived)
        if on_ended is not None:
            self.ended.connect(on_ended)
        self.poll: Poll | None = None
        self._computation: _Computation | None = None

    @property
    def busy(self) -> bool:
        return self.poll is not None

    def start(self, make: Make) -> None:
        """Compute the results that ``make`` yields. A computation that is still going on is cancelled."""
        self.leave()
        self._computation = computation = _Computation(self, make, self.failed)
        self.poll = computation.poll
        computation.told.connect(self._on_told, Qt.ConnectionType.QueuedConnection)
        computation.start()

    def cancel(self) -> None:
        """Cancel the computation. Results that have arrived are kept."""
        if self.busy:
            self.leave()
            self.ended.emit(CANCELLED)

    def leave(self) -> None:
        """Cancel the computation without waiting for the thread, which may be reading from an unresponsive disk."""
        poll, self.poll = self.poll, None
        if poll is not None:
            poll.stopped = True

    def close(self, patience: float | None = None) -> None:
        """Cancel the computation, and wait at most ``patience`` seconds for the thread to end, by default
        ``DEAF_SECONDS``.
        """
        self.leave()
        if self._computation is not None:
            self._computation.wait(DEAF_SECONDS if patience is None else patience)

    @Slot(object, object, bool)
    def _on_told(self, poll: Poll, content: object, over: bool) -> None:
        if poll is not self.poll:
            return
        if over:
            self.poll = None
            self.ended.emit(content)
        else:
            self.arrived.emit(content)
