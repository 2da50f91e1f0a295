"""Races, sweeps and repeats, computed one at a time in the background, with results shown as they arrive."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from app.jobs.runner import CANCELLED, Make, Runner


class ExperimentResults:
    """The results of an experiment, added as they arrive.

    Attributes:
        count: number of results computed so far.
        wanted: number of all results.
        note: the reason why results are missing; empty while they are being computed and when they are complete.
    """

    def __init__(self, wanted: int) -> None:
        self.count, self.wanted, self.note = 0, wanted, ""

    @property
    def complete(self) -> bool:
        return self.count == self.wanted

    @property
    def so_far(self) -> str:
        """Message stating how many results have been computed."""
        raise NotImplementedError

    @property
    def headline(self) -> str:
        """Sentences on what a complete experiment shows. Empty before it is complete."""
        return self._stated if self.complete else ""

    @cached_property
    def _stated(self) -> str:
        """The headline, which is expensive."""
        raise NotImplementedError

    def take(self, result: Any) -> None:
        raise NotImplementedError


R = TypeVar("R", bound=ExperimentResults)


class ExperimentController(Runner, Generic[R]):
    """Starts and cancels experiments. A new experiment replaces the previous one.

    Attributes:
        results: the results shown; None before the first result of the first experiment.
        coming: the results of the experiment being computed; None if there is none.
        problem: message that says why an experiment could not be computed; empty if there is no problem.

    Signals:
        changed: emitted when the results, the problem or the progress changes.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent, self._on_arrived, self._on_ended)
        self.results: R | None = None
        self.problem = ""
        self.coming: R | None = None
        self._closed = False

    def begin(self, coming: R, make: Make) -> None:
        """Begin the experiment ``make``, whose results are added to ``coming``.

        An experiment that is still being computed is cancelled.
        """
        if not self._closed:
            self.problem, self.coming = "", coming
            self.start(make)
            self.changed.emit()

    def refuse(self, sentence: str) -> None:
        """Report the reason why no experiment is computed. The results shown are kept."""
        self.problem = sentence
        self.changed.emit()

    def close(self, patience: float | None = None) -> None:
        """Stop computing permanently, for example when the window closes."""
        self._closed, self.coming = True, None
        super().close(patience)

    def _announce(self, coming: R) -> None:
        """Emit ``changed`` for a new result. Subclasses with many small results do so less often."""
        self.changed.emit()

    @Slot(object)
    def _on_arrived(self, result: object) -> None:
        assert self.coming is not None
        self.coming.take(result)
        self.results = self.coming
        self._announce(self.coming)

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        coming, self.coming = self.coming, None
        if coming is not None and sentence:
            if coming.count:
                coming.note = coming.so_far
            if not coming.count or sentence != CANCELLED:
                self.problem = sentence
        self.changed.emit()
