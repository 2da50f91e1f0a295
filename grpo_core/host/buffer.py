"""Buffer of finished updates between the loop and the window, which empties it once per frame."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from grpo_core.config import Settings
from grpo_core.metrics import METRICS, metrics
from grpo_core.record import Step
from grpo_core.text import tr

NAMES = tuple(METRICS)
MakeStep = Callable[[], Step]
CAPACITY = 8192
"""Maximum number of updates whose scalars wait for the window (0.7 MB), enough for a few seconds at full speed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fresh:
    """Updates that arrived since the last call, without a gap.

    Attributes:
        scalars: name -> (n,) float64, one entry per new update.
        changes: (first update under the new settings, settings) for every change to the settings among the new updates.
    """

    run_id: str
    first: int
    head: int
    scalars: dict[str, np.ndarray]
    changes: tuple[tuple[int, Settings], ...]
    last: Step


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """Changes to a buffer since its last bundle, used to update the buffer of another process.

    Attributes:
        head: number of the last finished update.
        committed: number of the last update in the file.
        scalars: (n, K) float64, one row for each of the n newest updates, one column for each name in ``NAMES``.
        changes: (first update under the new settings, settings) for every change to the settings among them.
        steps: (number, function that decodes the update) for the updates that the file lacks, and always for the last
            one, oldest first. Only the few that are displayed get decoded.
    """

    run_id: str
    head: int
    committed: int
    scalars: np.ndarray
    changes: tuple[tuple[int, Settings], ...]
    steps: tuple[tuple[int, MakeStep], ...]


class Buffer:
    """The updates of one run that the window has not seen, or that its file does not contain yet. Thread-safe.

    It stays small on both sides: updates are removed once a commit has put them on disk, and the loop pauses while
    the buffer is :attr:`full`.

    Attributes:
        version: number that grows with every change, so that an unchanged buffer is recognized by one comparison.
        head: number of the last finished update.
        committed: number of the last update in the file.
    """

    def __init__(self, run_id: str, settings: Settings, *, head: int = 0, capacity: int = CAPACITY) -> None:
        self.run_id = run_id
        self.version = 0
        self.head = head
        self.committed = head
        self._lock = threading.Lock()
        self._settings = settings
        self._last: Step | None = None
        self._waiting: dict[int, tuple[MakeStep, Mapping[str, float] | np.ndarray]] = {}
        self._changes: list[tuple[int, Settings]] = []
        self._scalars = np.empty((capacity, len(NAMES)))
        self._count = 0
        self._sent = head, head  # head and committed of the last bundle

    @property
    def full(self) -> bool:
        """Whether the window is so far behind that no more updates can be added."""
        return self._count >= len(self._scalars)

    @property
    def space(self) -> int:
        """Number of updates that can be added before the window takes some."""
        return len(self._scalars) - self._count

    def put(self, step: Step, scalars: Mapping[str, float]) -> None:
        """Add the next finished update with its metrics (loop).

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
            self._waiting[step.step] = _maker(step), scalars
            self.head = step.step
            self.version += 1

    def restore(self, steps: Sequence[Step]) -> None:
        """Add finished updates that the window has seen but no file contains yet (loop)."""
        with self._lock:
            for step in steps:
                self._waiting[step.step] = _maker(step), metrics(step)
                self._last, self._settings, self.head = step, step.settings, step.step
            self._sent = self.head, self.committed

    def waiting(self, after: int) -> list[tuple[Step, Mapping[str, float]]]:
        """Return the updates after ``after`` not known to be in the file, with their metrics, oldest first (loop)."""
        if after >= self.head:
            return []
        with self._lock:
            newest = takewhile(lambda number: number > after, reversed(self._waiting))
            kept = [self._waiting[number] for number in newest]
        return [(make(), _named(scalars)) for make, scalars in reversed(kept)]

    def mark_committed(self, number: int) -> None:
        """Record that the file contains every update up to ``number`` (loop)."""
        with self._lock:
            self._drop(number)

    def uncommitted(self, number: int) -> Step | None:
        """Return update ``number`` if it is the last one or not in the file yet, otherwise None (window)."""
        with self._lock:
            if self._last is not None and self._last.step == number:
                return self._last
            kept = self._waiting.get(number)
        return None if kept is None else kept[0]()

    def take(self) -> Fresh | None:
        """Return everything since the last call, or None if nothing is new (window)."""
        if not self._count:
            return None
        with self._lock:
            assert self._last is not None
            rows, changes = self._emptied()
            return Fresh(
                run_id=self.run_id,
                first=self.head - len(rows) + 1,
                head=self.head,
                scalars=dict(zip(NAMES, rows.T.copy(), strict=True)),
                changes=changes,
                last=self._last,
            )

    def bundle(self) -> Bundle | None:
        """Return everything since the last call, for another process's buffer, or None if nothing is new (loop)."""
        now = self.head, self.committed
        if now == self._sent:
            return None
        with self._lock:
            rows, changes = self._emptied()
            (sent, _), self._sent = self._sent, now
            steps = [(number, make) for number, (make, _) in self._waiting.items() if number > sent]
            if self._last is not None and self.head > sent and self.head not in self._waiting:
                steps.append((self.head, _maker(self._last)))
            return Bundle(
                run_id=self.run_id,
                head=self.head,
                committed=self.committed,
                scalars=rows,
                changes=changes,
                steps=tuple(steps),
            )

    def extend(self, bundle: Bundle) -> None:
        """Add the updates that another process has finished (window's side). The buffer always has room for them."""
        last = bundle.steps[-1][1]() if bundle.steps else None
        with self._lock:
            count = self._count + len(bundle.scalars)
            if count > len(self._scalars):
                self._scalars = np.concatenate([self._scalars, np.empty((count, len(NAMES)))])
            self._scalars[self._count : count] = bundle.scalars
            self._count = count
            self._changes += bundle.changes
            for number, make in bundle.steps:
                self._waiting[number] = make, bundle.scalars[number - bundle.head - 1]
            if last is not None:
                self._last, self._settings = last, last.settings
            self._drop(bundle.committed)
            self.head = bundle.head
            self.version += 1

    def _emptied(self) -> tuple[np.ndarray, tuple[tuple[int, Settings], ...]]:
        """Remove and return the scalars (n, K) and the changes to the settings that are waiting for the window."""
        rows, changes = self._scalars[: self._count].copy(), tuple(self._changes)
        self._count = 0
        self._changes.clear()
        return rows, changes

    def _drop(self, committed: int) -> None:
        for number in [number for number in self._waiting if number <= committed]:
            del self._waiting[number]
        self.committed = committed


def _maker(step: Step) -> MakeStep:
    return lambda: step


def _named(scalars: Mapping[str, float] | np.ndarray) -> Mapping[str, float]:
    return dict(zip(NAMES, scalars.tolist(), strict=True)) if isinstance(scalars, np.ndarray) else scalars
