"""A queue of runs in a folder: trained one after the other, given up at any time, gone on with where the files stand.

The folder holds a manifest, which says what is wanted (``queue_plan.py``), and one ordinary run file for each run. What
has been done is read from those files and is written down nowhere else, so that a killed process leaves nothing to be
repaired.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, RunFileError
from grpo_core.experiments.queue_plan import MANIFEST, Planned, Queue, axis, begin, end, planned, read
from grpo_core.learners import learner, never
from grpo_core.metrics import METRICS, metrics
from grpo_core.runs.files import in_use, lock, release
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point

__all__ = [
    "Held", "Planned", "Progress", "Queue", "Result",
    "axis", "begin", "end", "held", "planned", "read", "results", "unfinished", "work",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Held:
    """How far a run is.

    Attributes:
        done: updates in its file.
        last: the last value that was measured of each series.
        trouble: why it has ended early, in a sentence, or empty.
    """

    done: int = 0
    last: Mapping[str, float] = field(default_factory=dict)
    trouble: str = ""

    def finished(self, queue: Queue) -> bool:
        """Whether nothing of it is left to be done."""
        return self.done >= queue.updates or bool(self.trouble)

    def after(self, done: int, scalars: Mapping[str, float]) -> Held:
        """The same after a further update."""
        return replace(self, done=done, last={**self.last, **{k: v for k, v in scalars.items() if v == v}})


class Progress(NamedTuple):
    """One more update.

    Attributes:
        place: of the run in the queue.
        done: updates that it has now.
        scalars: the metrics of the update.
        left: seconds until the queue is done, at the pace so far.
    """

    place: int
    done: int
    scalars: Mapping[str, float]
    left: float


class Result(NamedTuple):
    """What a run of the queue has come to.

    Attributes:
        settings: of the run.
        seed: of the run.
        measures: name of a series -> its values, (updates done,); entry i is update i + 1, NaN where not measured.
    """

    settings: Settings
    seed: int
    measures: dict[str, np.ndarray]


# -- how far it is ---------------------------------------------------------------------------------------------------


def held(folder: Path, run: Planned) -> Held:
    """How far a run is.

    Raises:
        RunFileError: its file is damaged.
    """
    path = folder / run.file
    trouble = ""
    with suppress(OSError):
        trouble = _trouble(path).read_text(encoding="utf-8")
    if not path.exists():
        return Held(trouble=trouble)
    with RunReader.open(path) as reader:
        last = {name: _last_known(reader.series(name)) for name in METRICS}
        return Held(done=reader.last, last={k: v for k, v in last.items() if v == v}, trouble=trouble)


def unfinished(folder: Path) -> bool:
    """Whether the queue in ``folder`` waits for somebody to go on with it; False where it cannot be read."""
    try:
        queue = read(folder)
        if queue.ended or in_use(folder / MANIFEST):
            return False
        return any(not held(folder, run).finished(queue) for run in queue.runs)
    except GrpoError:
        return False


def results(folder: Path) -> list[Result]:
    """What the runs of the queue in ``folder`` have come to so far, in its order; runs not begun are left out.

    Raises:
        RunFileError: there is no queue, or a run is damaged.
    """
    found = []
    for run in read(folder).runs:
        path = folder / run.file
        if path.exists():
            with RunReader.open(path) as reader:
                measures = {name: reader.series(name) for name in METRICS}
            if len(measures["reward_mean"]):
                found.append(Result(run.settings, run.settings.seed, measures))
    return found


# -- doing it ----------------------------------------------------------------------------------------------------------


def work(
    folder: Path,
    *,
    cancelled: Callable[[], bool] = never,
    progress: Callable[[Progress], None] = lambda told: None,
) -> bool:
    """Go on with the queue in ``folder`` from where its files stand.

    A run with a number that is not finite ends there, with the sentence beside its file; the others go on.

    Args:
        folder: of the queue.
        cancelled: asked before every token and every pass; what was finished stays.
        progress: told after every update.

    Returns:
        Whether everything is done.

    Raises:
        RunFileError: somebody else works on the queue, or a run cannot be written.
        GrpoError: the runs cannot be trained here.
    """
    queue = read(folder)
    with _claimed(folder):
        far = [held(folder, run) for run in queue.runs]
        pace = _Pace(sum(queue.updates - one.done for one in far if not one.finished(queue)))
        busy: RunFileError | None = None
        for place, run in enumerate(queue.runs):
            if far[place].finished(queue):
                continue
            path = folder / run.file

            def told(done: int, scalars: Mapping[str, float], place: int = place) -> None:
                progress(Progress(place, done, scalars, pace.lap()))

            if in_use(path):
                busy = RunFileError(f"{run.title} is being trained in a window; close it there, then go on here.")
                continue
            try:
                _train(path, run, queue.updates, cancelled, told)
            except Cancelled:
                return False
            except NonFiniteError as error:
                pace.give_up(queue.updates - error.step + 1)
                _trouble(path).write_text(str(error), encoding="utf-8")
        if busy is not None:
            raise busy
    return True


def _train(
    path: Path,
    run: Planned,
    updates: int,
    cancelled: Callable[[], bool],
    told: Callable[[int, Mapping[str, float]], None],
) -> None:
    """Train a run on until it has so many updates; tells after each how many it has, and the metrics of the last."""
    there = path.exists()
    with RunWriter.open(path) if there else RunWriter.create(path, run.settings, title=run.title) as writer:
        with RunReader.open(path) as reader:
            training = learner(run.settings, resume=resume_point(reader), earlier=reader.step, cancelled=cancelled)
        for done in range(writer.committed + 1, updates + 1):
            step = next(training)
            scalars = metrics(step)
            writer.append(step, scalars)
            told(done, scalars)
            if writer.full:
                raise RunFileError(writer.full)


class _Pace:
    """How long the rest will take, at the mean pace so far."""

    def __init__(self, left: int) -> None:
        self._left, self._done, self._began = left, 0, time.monotonic()

    def lap(self) -> float:
        """One update is done; seconds until the last."""
        self._left, self._done = self._left - 1, self._done + 1
        return max(self._left, 0) * (time.monotonic() - self._began) / self._done

    def give_up(self, updates: int) -> None:
        """So many will not be computed."""
        self._left -= updates


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Nobody else works on the queue meanwhile."""
    path = folder / MANIFEST
    if in_use(path):
        raise RunFileError(f"Somebody else is training the runs of {folder}; wait, or stop them there.")
    held_lock = lock(path)
    try:
        yield
    finally:
        release(held_lock)


def _trouble(path: Path) -> Path:
    return path.with_suffix(".stopped.txt")


def _last_known(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else float("nan")
