"""Results of a lesson's experiments, by what was asked. Computed beside the window, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, SignalInstance

from app.jobs.runner import Poll, Runner

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class Experiments(Generic[Key, Result]):
    """Results by key, as they come. After a failure nothing more is computed until :meth:`retry`.

    Attributes:
        problem: why the experiment that was asked for last could not be computed, in a sentence, or empty.
    """

    def __init__(
        self, parent: QObject, make: Callable[[Key, Poll], Iterator[Result]], changed: SignalInstance,
        *, waits: bool = True,
    ) -> None:  # fmt: skip
        """Keep the results that ``make`` yields for a key, and emit ``changed`` with each.

        ``waits``: whether closing waits for the experiment; a process that is still loading takes seconds to end.
        """
        self._make, self._changed, self._waits = make, changed, waits
        self._results: dict[Key, list[Result]] = {}
        self._complete: set[Key] = set()
        self._coming: Key | None = None
        self.problem = ""
        self._closed = False
        self._runner = Runner(parent)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def busy(self) -> bool:
        """Whether results are still to come."""
        return self._runner.busy

    @property
    def coming(self) -> Key | None:
        """The experiment that is being computed. None at rest."""
        return self._coming

    def results(self, key: Key | None) -> list[Result]:
        """The results for ``key``, as far as they have come."""
        return [] if key is None else self._results.get(key, [])

    def latest(self, key: Key | None) -> Result | None:
        """The newest result for ``key``. None where there is none yet."""
        results = self.results(key)
        return results[-1] if results else None

    def complete(self, key: Key | None) -> bool:
        """Whether all results for ``key`` have come."""
        return key in self._complete

    def want(self, key: Key) -> None:
        """Have the results for ``key`` computed, unless they are there or on their way.

        An experiment for another key that is still being computed is given up.
        """
        if key in self._complete or key == self._coming or self.problem:
            return
        self._coming, self._results[key] = key, []

        def make(poll: Poll) -> Iterator[object]:
            return ((key, result) for result in self._make(key, poll))

        self._runner.start(make)

    def retry(self) -> None:
        """Something else is asked: what failed before is no reason any more."""
        self.problem = ""

    def close(self) -> None:
        """Give up what is being computed."""
        self._closed = True
        if self._waits:
            self._runner.close()
        else:
            self._runner.cancel()

    def _on_arrived(self, arrived: tuple[Key, Result]) -> None:
        key, result = arrived
        self._results[key].append(result)
        self._changed.emit()

    def _on_ended(self, sentence: str) -> None:
        if self._closed:
            return
        if self._coming is not None and not sentence:
            self._complete.add(self._coming)
        self._coming, self.problem = None, sentence
        self._changed.emit()
