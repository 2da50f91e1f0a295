"""Common base class for computing races and sweeps, one experiment at a time, in the background."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from app.jobs.runner import CANCELLED, Make, Runner


class ExperimentResults(Protocol):
    """The results of an experiment so far.

    Attributes:
        note: the reason why results are missing; empty while they are being computed and when they are complete.
    """

    note: str

    @property
    def count(self) -> int:
        """Number of results computed so far."""

    @property
    def so_far(self) -> str:
        """Message stating how many results have been computed or, for an experiment that ended early, its note."""


R = TypeVar("R", bound=ExperimentResults)


class ExperimentController(QObject, Generic[R]):
    """Starts and cancels experiments. A new experiment replaces the previous one.

    Attributes:
        results: the results shown; None before the first result of the first experiment.
        problem: message that says why an experiment could not be computed; empty if there is no problem.

    Signals:
        changed: emitted when the results, the problem or the progress changes.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.results: R | None = None
        self.problem = ""
        self._coming: R | None = None
        self._closed = False
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def busy(self) -> bool:
        """Whether results are still being computed."""
        return self._coming is not None

    @property
    def done(self) -> int:
        """Number of results of the current experiment so far, or 0 if none is running."""
        return self._coming.count if self._coming is not None else 0

    def refuse(self, sentence: str) -> None:
        """Report the reason why no experiment is computed. The results shown are kept."""
        self.problem = sentence
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the experiment, keeping the results computed so far."""
        self._runner.cancel()

    def close(self) -> None:
        """Stop computing permanently, for example when the window closes."""
        self._closed, self._coming = True, None
        self._runner.close()

    def _begin(self, coming: R, make: Make) -> None:
        """Start the experiment ``make``, whose results are added to ``coming``.

        An experiment that is still being computed is cancelled.
        """
        if not self._closed:
            self.problem, self._coming = "", coming
            self._runner.start(make)
            self.changed.emit()

    def _take(self, coming: R, result: object) -> None:
        """Add the next result to ``coming``."""
        raise NotImplementedError

    def _announce(self, coming: R) -> None:
        """Emit ``changed`` for a new result. Subclasses with many small results do so less often."""
        self.changed.emit()

    @Slot(object)
    def _on_arrived(self, result: object) -> None:
        assert self._coming is not None
        self._take(self._coming, result)
        self.results = self._coming
        self._announce(self._coming)

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        coming, self._coming = self._coming, None
        if coming is not None and sentence:
            if coming.count:
                coming.note = coming.so_far
            if not coming.count or sentence != CANCELLED:
                self.problem = sentence
        self.changed.emit()
