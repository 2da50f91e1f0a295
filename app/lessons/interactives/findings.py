"""What a lesson's experiments have found, by what was asked; each is made once, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, SignalInstance

from app.experiments.runner import Poll, Runner

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Findings(Generic[Key, Value]):
    """Results by key; after a failure nothing more is computed until :meth:`again`.

    Attributes:
        problem: why the last one asked for could not be computed, in a sentence, or empty.
    """

    def __init__(self, parent: QObject, compute: Callable[[Key, Poll], Value], changed: SignalInstance) -> None:
        self._compute, self._changed = compute, changed
        self._held: dict[Key, Value] = {}
        self._coming: Key | None = None
        self.problem = ""
        self._runner = Runner(parent)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def busy(self) -> bool:
        """Whether a result is still to come."""
        return self._runner.busy

    def get(self, key: Key | None) -> Value | None:
        """The result for ``key``, None where there is none yet."""
        return None if key is None else self._held.get(key)

    def want(self, key: Key) -> None:
        """Have the result for ``key`` computed, unless it is there or on its way."""
        if key in self._held or key == self._coming or self.problem:
            return
        self._coming = key

        def make(poll: Poll) -> Iterator[object]:
            yield key, self._compute(key, poll)

        self._runner.start(make)

    def again(self) -> None:
        """Something else is asked: what failed before is no reason any more."""
        self.problem = ""

    def close(self) -> None:
        """Give up what is being computed."""
        self._runner.close()

    def _on_arrived(self, result: tuple[Key, Value]) -> None:
        self._held[result[0]] = result[1]
        self._changed.emit()

    def _on_ended(self, sentence: str) -> None:
        self._coming, self.problem = None, sentence
        self._changed.emit()
