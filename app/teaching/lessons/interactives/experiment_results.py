"""Results of a lesson's experiments by key, computed one at a time in the background."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, SignalInstance

from app.jobs.runner import Poll, Runner

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class Experiments(Generic[Key, Result]):
    """Results by key, added as they are computed. After a failure, nothing is computed until other keys are wanted.

    Attributes:
        problem: message explaining why the last requested experiment could not be computed, or an empty string.
    """

    def __init__(
        self,
        parent: QObject,
        make: Callable[[Key, Poll], Iterator[Result]],
        changed: SignalInstance,
        *,
        waits: bool = True,
    ) -> None:
        """Store the results that ``make`` yields for a key, emitting ``changed`` after each.

        ``waits``: whether closing waits for the experiment to end. A process that is still loading takes seconds to
        end.
        """
        self._make, self._changed, self._waits = make, changed, waits
        self._results: dict[Key, list[Result]] = {}
        self._complete: set[Key] = set()
        self._wanted: tuple[Key, ...] = ()
        self._coming: Key | None = None
        self.problem = ""
        self._closed = False
        self._runner = Runner(parent)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def busy(self) -> bool:
        """Whether results are still being computed."""
        return self._runner.busy

    @property
    def coming(self) -> Key | None:
        """Key of the experiment being computed, or None."""
        return self._coming

    def results(self, key: Key | None) -> list[Result]:
        """Return the results for ``key`` computed so far."""
        return [] if key is None else self._results.get(key, [])

    def latest(self, key: Key | None) -> Result | None:
        """Return the newest result for ``key``, or None if there is none yet."""
        results = self.results(key)
        return results[-1] if results else None

    def complete(self, key: Key | None) -> bool:
        """Return whether all results for ``key`` have been computed."""
        return key in self._complete

    def settled(self, keys: Sequence[Key]) -> bool:
        """Return whether all results for ``keys`` have been computed, or computing failed."""
        return bool(self.problem) or self._complete.issuperset(keys)

    def want_all(self, keys: Sequence[Key]) -> None:
        """Compute the results for ``keys``, one key after another, and for no other keys from now on."""
        if tuple(keys) != self._wanted:
            self._wanted, self.problem = tuple(keys), ""
        missing = next((key for key in keys if key not in self._complete), None)
        if missing is not None:
            self.want(missing)

    def want(self, key: Key) -> None:
        """Compute the results for ``key`` unless they are available or already being computed.

        An experiment running for another key is cancelled.
        """
        if key in self._complete or key == self._coming or self.problem:
            return
        self._coming, self._results[key] = key, []

        def make(poll: Poll) -> Iterator[object]:
            return ((key, result) for result in self._make(key, poll))

        self._runner.start(make)

    def close(self) -> None:
        """Cancel the current computation."""
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
