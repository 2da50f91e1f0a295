"""Experiments in a background thread.

Results arrive as they are computed, and the computation can be cancelled at any time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from threading import Event, Thread

from PySide6.QtCore import QObject, Qt, Signal, Slot

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.text import tr

Poll = Callable[[], None]
Make = Callable[[Poll], Iterator[object]]
"""A function that yields the results of an experiment one by one, and calls its argument every few milliseconds."""
CANCELLED = tr("Cancelled; what was done is kept.")
DEAF_SECONDS = 5.0
"""Seconds within which a cancelled experiment must react.

An experiment that reads from an unresponsive disk never reacts, and is abandoned.
"""


class Runner(QObject):
    """Computes one experiment at a time. Starting another one replaces it.

    Attributes:
        busy: whether an experiment is being computed.

    Signals:
        arrived: emitted with the next result, in order.
        ended: emitted when the experiment is over, with None if it is complete, otherwise with a sentence that says why
            results are missing.
    """

    arrived = Signal(object)
    ended = Signal(str)
    _result_ready = Signal(object, object)
    _over = Signal(object, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._given_up: Event | None = None  # of the experiment being computed: set when its results are not needed
        self._thread: Thread | None = None
        self._result_ready.connect(self._on_result_ready, Qt.ConnectionType.QueuedConnection)
        self._over.connect(self._on_over, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Whether results are still being computed."""
        return self._given_up is not None

    def start(self, make: Make) -> None:
        """Compute the results that ``make`` yields. An experiment that is still being computed is cancelled."""
        self._give_up()
        self._given_up = Event()
        self._thread = Thread(target=self._compute, args=(make, self._given_up), name="experiment", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the experiment. Results that have arrived are kept."""
        if self._give_up():
            self.ended.emit(CANCELLED)

    def leave(self) -> None:
        """Cancel the experiment without waiting for the thread, which may be reading from an unresponsive disk."""
        self._give_up()

    def close(self, patience: float | None = None) -> None:
        """Cancel the experiment, and wait at most ``patience`` seconds for the thread to end, by default
        ``DEAF_SECONDS``.
        """
        self._give_up()
        if self._thread is not None:
            self._thread.join(DEAF_SECONDS if patience is None else patience)

    def _give_up(self) -> bool:
        given_up, self._given_up = self._given_up, None
        if given_up is not None:
            given_up.set()
        return given_up is not None

    def _compute(self, make: Make, given_up: Event) -> None:
        def poll() -> None:
            if given_up.is_set():
                raise Cancelled(tr("The experiment was cancelled."))

        sentence = tr("The experiment failed; what was done is kept.")
        try:
            for result in make(poll):
                poll()
                try:
                    self._result_ready.emit(given_up, result)
                except RuntimeError:  # a window that was deleted without being closed no longer listens
                    return
            sentence = ""
        except Cancelled:
            sentence = CANCELLED
        except GrpoError as error:
            sentence = str(error)
        except OSError as error:
            sentence = tr("The file could not be reached: {strerror}.").format(strerror=error.strerror or error)
        finally:
            if not given_up.is_set():
                # a window that was deleted without being closed no longer listens
                with contextlib.suppress(RuntimeError):
                    self._over.emit(given_up, sentence)

    @Slot(object, object)
    def _on_result_ready(self, given_up: Event, result: object) -> None:
        if given_up is self._given_up:
            self.arrived.emit(result)

    @Slot(object, str)
    def _on_over(self, given_up: Event, sentence: str) -> None:
        if given_up is self._given_up:
            self._given_up = None
            self.ended.emit(sentence)
