"""A run file with an imported run, read as a command needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from grpo_core.foreign.readers import recorded
from grpo_core.foreign.recording import Source
from grpo_core.metrics import METRICS
from grpo_core.record import Step
from grpo_core.runs.reader import RunReader
from grpo_core.trainers.recorded_jobs import batches
from grpo_core.trainers.recorded_series import OURS


@contextmanager
def opened(path: Path, poll: Callable[[], None]) -> Iterator[ImportedReader]:
    """Open the imported run in the run file at ``path``. ``poll`` can cancel reading it.

    Raises:
        RunFileError: it cannot be read.
    """
    with recorded(path, poll) as source, ImportedReader.open(path) as imported:
        imported.source, imported.poll = source, poll
        yield imported


class ImportedReader(RunReader):
    """A run file with an imported run. Its series are not stored: they are computed, as in the window.

    Attributes:
        source: the run, as read by the process for untrusted files.
        poll: called for each update whose numbers are computed.
    """

    source: Source
    poll: Callable[[], None]

    @cached_property
    def numbers(self) -> list[Mapping[str, float]]:
        """The numbers of each update (:func:`.recorded_series.numbers`). Empty for one that is unreadable."""
        found = [*chain.from_iterable(batches(self.source, 0, len(self.source), self.poll))]
        return [*found, *({} for _ in range(self.last - len(found)))]

    @cached_property
    def series_names(self) -> list[str]:
        """The names of the numbers computed from an imported run, and of those that its trainer reported."""
        return list(dict.fromkeys([*OURS, *chain.from_iterable(self.numbers)]))

    def series(self, name: str, start: int = 0) -> np.ndarray:
        if name not in METRICS and name not in self.series_names:
            raise KeyError(name)
        return np.array([row.get(name, np.nan) for row in self.numbers[start:]], np.float64)

    def step(self, number: int) -> Step:
        if not 1 <= number <= len(self.source):
            return super().step(number)
        return self.source.step(number)
