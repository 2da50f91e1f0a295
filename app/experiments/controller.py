"""The common part of race and sweep: one experiment at a time beside the window, shown while the rest is coming."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from app.jobs.runner import CANCELLED, Make, Runner


class ExperimentResults(Protocol):
    """Results of an experiment so far.

    Attributes:
        note: why not all results have come; empty while they come and once they have.
    """

    note: str

    @property
    def count(self) -> int:
        """Number of results that have come."""

    @property
    def so_far(self) -> str:
        """How many of how many have come, in a sentence: the note of an experiment that has ended early."""


R = TypeVar("R", bound=ExperimentResults)


class ExperimentController(QObject, Generic[R]):
    """Starts an experiment or gives it up. The latest one counts.

    Attributes:
        results: what is shown; None before the first result of the first experiment.
        problem: why an experiment could not be, in a sentence.

    Signals:
        changed: the results, the problem, or how far the experiment is.
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
        """Whether results are still to come."""
        return self._coming is not None

    @property
    def done(self) -> int:
        """Number of results that have come, of the experiment that is being computed. 0 at rest."""
        return self._coming.count if self._coming is not None else 0

    def refuse(self, sentence: str) -> None:
        """Say why there is no experiment. What is shown stays."""
        self.problem = sentence
        self.changed.emit()

    def cancel(self) -> None:
        """Give the experiment up. The results that have come stay."""
        self._runner.cancel()

    def close(self) -> None:
        """Stop computing for good, as when the window closes."""
        self._closed, self._coming = True, None
        self._runner.close()

    def _begin(self, coming: R, make: Make) -> None:
        """Compute what ``make`` yields for ``coming``. An experiment that is still being computed is given up."""
        if not self._closed:
            self.problem, self._coming = "", coming
            self._runner.start(make)
            self.changed.emit()

    def _take(self, coming: R, result: object) -> None:
        """Add the next result to ``coming``."""
        raise NotImplementedError

    def _announce(self, coming: R) -> None:
        """Say that a result has come. An experiment with many small ones says so less often."""
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
