"""Background work on an open recorded run: its series are computed, and newly recorded updates appear."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.jobs.runner import Poll, Runner
from app.trainers.recorded_run import RecordedRun
from grpo_core.foreign.formats import refreshed
from grpo_core.foreign.readers import Readers
from grpo_core.foreign.recording import Source
from grpo_core.foreign.source import RemoteSource

if TYPE_CHECKING:
    from grpo_core.trainers.importers.series_cache import SeriesCache

SOON_MS, LATER_MS = 2_000, 15_000
"""Minimum and maximum number of milliseconds between two checks of the folder, the minimum while it grows."""
IN_THREAD = 32
"""Maximum number of updates that are computed in a thread, because starting a process would take longer."""
LEAST_KEPT = 32
"""Minimum number of computed updates at which writing the cache is worthwhile."""

FIRST, LAST = 64, 192
"""Numbers of updates at the beginning and at the end of a long run that are computed first, in this order."""
WORTH_SAYING = 1_000
"""Number of updates above which the progress of the computation is shown."""

Rows = tuple[int, list[dict[str, float]]]
"""The number of updates before the first of some consecutive updates, and the numbers of each of these by name."""
Found: TypeAlias = tuple[int, Source | None, bool]
"""Result of :func:`grpo_core.foreign.formats.refreshed`."""


class RecordedFollower(QObject):
    """Follows a recorded run until it is closed.

    Signals:
        grown: emitted with the follower when the run has more updates than before.
        replaced: emitted with the follower and the new source when the folder contains a different run than before.
        quiet: emitted when no computation or check is in progress.
        progressed: emitted with the follower, and with the numbers of computed and of all updates, which are equal when
            complete.
    """

    progressed = Signal(object, int, int)
    grown = Signal(object)
    replaced = Signal(object, object)
    quiet = Signal()

    def __init__(
        self,
        run: RecordedRun,
        readers: Readers,
        cache: SeriesCache,
        changed: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.run = run
        self._cache = cache
        self._readers = readers
        self._changed = changed
        self._stamp: int | None = None
        self._planned = self._done = 0
        self._stopped = False
        self._runner = Runner(self, self._on_rows, self._on_computed)
        self._looks = Runner(self, self._on_looked, self._on_look_ended)
        self._timer = Timer(self, self.look, SOON_MS)

    @property
    def busy(self) -> bool:
        return self._runner.busy or self._looks.busy

    def start(self) -> None:
        if self.run.source.partial:
            self.look()
        else:
            self._compute()
            self._timer.start()

    def close(self) -> None:
        """Stop following, without waiting for a disk that is still being read."""
        self._timer.stop()
        self._runner.leave()
        self._looks.leave()

    def _compute(self) -> None:
        start, end = self.run.computed, self.run.head
        if start >= end or self._runner.busy or self.run.source.partial or self._stopped:
            return
        source = copy.copy(self.run.source)
        self._planned, self._done = end - start, 0
        in_thread = end - start <= IN_THREAD and not self.run.large
        readers = None if in_thread else self._readers
        self._runner.start(partial(_computed, source, stretches(start, end), readers, self._cache))

    @Slot(object)
    def _on_rows(self, some: Rows) -> None:
        start, rows = some
        self.run.add_numbers(rows, start)
        self._done += len(rows)
        if self._planned >= WORTH_SAYING:
            self.progressed.emit(self, self._done, self._planned)
        self._changed()

    def stop_computing(self) -> None:
        """Stop computing series. Existing ones are kept, and the folder is still followed."""
        self._stopped = True
        self._runner.cancel()

    @Slot(str)
    def _on_computed(self, why_not: str) -> None:
        if self._planned >= WORTH_SAYING:
            self.progressed.emit(self, self._planned, self._planned)
        if not why_not and self.run.computed < self.run.head:
            self._timer.start()  # the last update was only partly written, or more have arrived in the meantime
        self.quiet.emit()

    # -- the folder --------------------------------------------------------------------------------------------------

    @Slot()
    def look(self) -> None:
        if not self._looks.busy:
            self._timer.setInterval(min(self._timer.interval() * 2, LATER_MS))  # unless there is something new
            self._looks.start(partial(_looked, self.run.source, self._stamp))

    @Slot(object)
    def _on_looked(self, found: Found) -> None:
        self._stamp, fresh, goes_on = found
        if fresh is not None and not goes_on:
            self.replaced.emit(self, fresh)
        elif fresh is not None:
            self._timer.setInterval(SOON_MS)
            more = len(fresh) > len(self.run.source)
            self.run.take(fresh)
            if more:
                self.grown.emit(self)
            self._changed()

    @Slot(str)
    def _on_look_ended(self, why_not: str) -> None:
        """Compute what has been read, and plan the next check. If the folder cannot be read, the display stays."""
        self._compute()
        self._timer.start()
        self.quiet.emit()


def stretches(start: int, end: int) -> list[tuple[int, int]]:
    """Split the updates after ``start`` up to ``end`` into stretches.

    They are in order of computation: the beginning, the end, and then the rest.
    """
    if end - start < 2 * (FIRST + LAST):
        return [(start, end)]
    return [(start, start + FIRST), (end - LAST, end), (start + FIRST, end - LAST)]


def _computed(
    source: Source, stretches: Sequence[tuple[int, int]], readers: Readers | None, cache: SeriesCache, poll: Poll
) -> Iterator[Rows]:
    """Yield the numbers of updates, from a process of ``readers``, or computed here if that is None.

    Partial results are written to the cache, even if the rest is cancelled.
    """
    known: dict[int, dict[str, float]] = {}
    start = stretches[0][0]
    try:
        for first, end in stretches:
            if readers is None:
                from grpo_core.trainers.recorded_jobs import batches  # audit and diagnosis, 40 ms of the start

                made = batches(source, first, end, poll)
            else:
                made = readers.results("recorded_series", source.path, first, end, source.columns, poll=poll)
            for rows in made:
                known |= enumerate(rows, first)
                yield first, rows
                first += len(rows)
    finally:
        whole = [known[n] for n in itertools.takewhile(known.__contains__, itertools.count(start))]
        if len(whole) >= LEAST_KEPT:
            cache.extend(source, start, whole)


def _looked(source: Source, stamp: int | None, poll: Poll) -> Iterator[Found]:
    found: Found = source.refreshed(stamp) if isinstance(source, RemoteSource) else refreshed(source, stamp)
    if isinstance(found[1], RemoteSource) and not found[2]:
        _ = found[1].vocabulary  # the window requests it when it begins again
    yield found
