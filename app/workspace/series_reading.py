"""Reader of all scalar series in a run's file. A long run is read by two threads, each with its own connection."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np

from grpo_core.errors import Cancelled
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader
from grpo_core.text import tr

LONG = 100_000
"""Minimum number of updates at which a second connection pays off.

Opening one takes a millisecond; reading a series of a million updates takes five.
"""


class Poll(Protocol):
    """The callback through which a long read is cancelled and reports its progress."""

    def __call__(self) -> bool:
        """Return whether to cancel the read."""

    def tell(self, fraction: float) -> None:
        """Report the completed share, from 0 to 1."""


def all_series(path: Path, reader: RunReader, poll: Poll | None = None) -> dict[str, np.ndarray]:
    """Return every scalar of a run by name, (n,), with one entry per update up to the reader's last.

    A series that only language models have is NaN throughout a bandit's run, and takes no memory there.

    Args:
        path: path of the file.
        reader: the open reader of that file.
        poll: tells whether to cancel, and receives the progress.

    Raises:
        RunFileError: the file cannot be read.
        Cancelled: requested by ``poll``.
    """
    language = reader.meta.settings.is_language
    names = [name for name, metric in METRICS.items() if language or not metric.language]
    absent = np.broadcast_to(np.nan, max(reader.last, 0))
    progress = _Progress(poll, len(names))
    if reader.last < LONG:
        read = _read(reader, names, progress)
    else:
        beside = _Beside(path, reader.last, names[1::2], progress)
        beside.start()
        try:
            read = _read(reader, names[::2], progress)
        except BaseException:
            progress.given_up = True
            raise
        read |= beside.result()
    return {name: read.get(name, absent) for name in METRICS}


class _Progress:
    """Progress reported jointly by two threads."""

    def __init__(self, poll: Poll | None, total: int) -> None:
        self._poll, self._total, self._lock = poll, total, threading.Lock()
        self._numbers = count()
        self.given_up = False

    def step(self) -> None:
        """Report that another series is about to be read.

        Raises:
            Cancelled: requested by the poll.
        """
        with self._lock:
            if self._poll is not None:
                self.given_up = self.given_up or self._poll()
                self._poll.tell(next(self._numbers) / self._total)
        if self.given_up:
            raise Cancelled(tr("The run was not opened."))


def _read(reader: RunReader, names: Sequence[str], progress: _Progress) -> dict[str, np.ndarray]:
    series = {}
    for name in names:
        progress.step()
        series[name] = reader.series(name)
    return series


class _Beside(threading.Thread):
    """A thread that reads series through its own connection.

    It is a daemon, so that an unresponsive disk cannot keep the program from ending.
    """

    def __init__(self, path: Path, last: int, names: Sequence[str], progress: _Progress) -> None:
        super().__init__(name="series", daemon=True)
        self._path, self._last, self._names, self._progress = path, last, names, progress
        self._series: dict[str, np.ndarray] = {}
        self._error: BaseException | None = None

    def run(self) -> None:
        """Read the series, omitting updates written after the first connection was opened."""
        try:
            with RunReader.open(self._path) as reader:
                read = _read(reader, self._names, self._progress)
            self._series = {name: values[: self._last] for name, values in read.items()}
        except BaseException as error:
            self._error = error

    def result(self) -> dict[str, np.ndarray]:
        """Wait for the thread and return every series.

        Raises:
            RunFileError, Cancelled: the error that ended the thread.
        """
        self.join()
        if self._error is not None:
            raise self._error
        return self._series
