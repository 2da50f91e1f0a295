"""Updates on their way from the worker to the window: put in one by one, taken out once a frame."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from grpo_core.config import Settings
from grpo_core.metrics import METRICS
from grpo_core.record import Step
from grpo_core.runs.thinning import Stretch
from grpo_core.text import tr

NAMES = tuple(METRICS)
CAPACITY = 8192
"""Updates whose scalars may wait for the window (0.7 MB): some seconds at full speed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fresh:
    """What has arrived since the last look, without a gap.

    Attributes:
        run_id: the run it belongs to.
        first: number of the first new update.
        head: number of the last.
        scalars: name -> (n,) float64, one entry a new update.
        changes: (first update under them, settings) for every change of settings among the new updates.
        last: the last update itself.
    """

    run_id: str
    first: int
    head: int
    scalars: dict[str, np.ndarray]
    changes: tuple[tuple[int, Settings], ...]
    last: Step


class Buffer:
    """The updates of one run that the window has not seen, or that its file does not hold yet. Thread-safe.

    It stays small on both sides: whole updates leave with the commit that puts them on disk, and the worker rests
    while :attr:`full`.

    Attributes:
        run_id: the run.
        version: grows with everything new; equal versions cost one comparison.
        head: number of the last finished update.
        committed: number of the last update in the file.
        thinned: where the file has dropped updates to stay below its size limit.
    """

    def __init__(self, run_id: str, settings: Settings, *, head: int = 0, capacity: int = CAPACITY) -> None:
        self.run_id = run_id
        self.version = 0
        self.head = head
        self.committed = head
        self.thinned: tuple[Stretch, ...] = ()
        self._lock = threading.Lock()
        self._settings = settings
        self._last: Step | None = None
        self._waiting: dict[int, tuple[Step, Mapping[str, float]]] = {}
        self._changes: list[tuple[int, Settings]] = []
        self._scalars = np.empty((capacity, len(NAMES)))
        self._count = 0

    @property
    def full(self) -> bool:
        """Whether the window has fallen so far behind that nothing more may be put in."""
        return self._count == len(self._scalars)

    def put(self, step: Step, scalars: Mapping[str, float]) -> None:
        """The next finished update with its metrics (worker).

        Raises:
            OverflowError: the buffer is full.
        """
        with self._lock:
            if self.full:
                raise OverflowError(tr("the buffer of finished updates is full"))
            self._scalars[self._count] = [scalars[name] for name in NAMES]
            self._count += 1
            if step.settings is not self._settings:
                if step.settings != self._settings:
                    self._changes.append((step.step, step.settings))
                self._settings = step.settings
            self._last = step
            self._waiting[step.step] = step, scalars
            self.head = step.step
            self.version += 1

    def waiting(self, after: int) -> list[tuple[Step, Mapping[str, float]]]:
        """The updates after number ``after`` not known to be in the file, with their metrics, oldest first (worker)."""
        with self._lock:
            return [held for number, held in self._waiting.items() if number > after]

    def mark_committed(self, number: int) -> None:
        """The file holds everything up to ``number`` now (worker)."""
        with self._lock:
            for held in [held for held in self._waiting if held <= number]:
                del self._waiting[held]
            self.committed = number

    def uncommitted(self, number: int) -> Step | None:
        """Update ``number`` if it is the last one or not in the file yet, else None (window)."""
        with self._lock:
            if self._last is not None and self._last.step == number:
                return self._last
            held = self._waiting.get(number)
            return None if held is None else held[0]

    def take(self) -> Fresh | None:
        """Everything since the last call; None if nothing is new (window)."""
        if not self._count:
            return None
        with self._lock:
            assert self._last is not None
            rows = self._scalars[: self._count].T.copy()  # (K, n)
            fresh = Fresh(
                run_id=self.run_id,
                first=self.head - self._count + 1,
                head=self.head,
                scalars=dict(zip(NAMES, rows, strict=True)),
                changes=tuple(self._changes),
                last=self._last,
            )
            self._count = 0
            self._changes.clear()
            return fresh
