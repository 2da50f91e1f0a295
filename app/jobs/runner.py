"""Experiments, and work on files, in a background thread.

Results arrive as they are computed, and the computation can be cancelled at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread

from PySide6.QtCore import QObject, Qt, Signal, Slot

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.text import tr

CANCELLED = tr("Cancelled; what was done is kept.")
DEAF_SECONDS = 5.0
"""Seconds within which a cancelled computation must react.

One that reads from an unresponsive disk never reacts, and is abandoned.
"""


class Poll:
    """The argument of a computation, which calls it every few milliseconds.

    Attributes:
        stopped: whether the computation is to end.
        fraction: completed fraction of the work, from 0 to 1; None if unknown.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.fraction: float | None = None

    def __call__(self) -> None:
        """Raise :class:`Cancelled` if the computation is to end."""
        if self.stopped:
            raise Cancelled(tr("The experiment was cancelled."))

    def tell(self, fraction: float) -> None:
        self.fraction = fraction


Make = Callable[[Poll], Iterator[object]]
"""A function that yields the results of a computation one by one."""


class Runner(QObject):
    """Runs one computation at a time. Starting another one replaces it.

    Attributes:
        poll: the argument of the current computation; None if there is none. One that sets ``stopped`` waits for
            ``ended``: the computation leaves nothing half-done behind.

    Signals:
        arrived: emitted with the next result, in order.
        ended: emitted when the computation is over, with an empty string if it is complete, otherwise with a sentence
            that says why results are missing.
    """

    arrived = Signal(object)
    ended = Signal(str)
    _told = Signal(object, object, bool)

    def __init__(self, parent: QObject | None = None, failed: str = "") -> None:
        """Create a runner. ``failed`` is the message about an unexpected error, by default one about an experiment."""
        super().__init__(parent)
        self.poll: Poll | None = None
        self._failed = failed or tr("The experiment failed; what was done is kept.")
        self._thread: Thread | None = None
        self._told.connect(self._on_told, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        return self.poll is not None

    def start(self, make: Make) -> None:
        """Compute the results that ``make`` yields. A computation that is still going on is cancelled."""
        self.leave()
        self.poll = Poll()
        self._thread = Thread(target=self._compute, args=(make, self.poll), name="experiment", daemon=True)
        self._thread.start()

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
        if self._thread is not None:
            self._thread.join(DEAF_SECONDS if patience is None else patience)

    def _compute(self, make: Make, poll: Poll) -> None:
        sentence = self._failed
        try:
            for result in make(poll):
                self._tell(poll, result)
                poll()
            sentence = ""
        except Cancelled:
            sentence = CANCELLED
        except GrpoError as error:
            sentence = str(error)
        except OSError as error:
            sentence = tr("The file could not be reached: {strerror}.").format(strerror=error.strerror or error)
        finally:
            self._tell(poll, sentence, over=True)

    def _tell(self, poll: Poll, content: object, *, over: bool = False) -> None:
        if poll is self.poll:
            try:
                self._told.emit(poll, content, over)
            except RuntimeError:  # a window that was deleted without being closed no longer listens
                poll.stopped = True

    @Slot(object, object, bool)
    def _on_told(self, poll: Poll, content: object, over: bool) -> None:
        if poll is not self.poll:
            return
        if over:
            self.poll = None
            self.ended.emit(content)
        else:
            self.arrived.emit(content)
