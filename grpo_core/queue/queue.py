"""A queue of runs in a folder: trained one after the other, given up at any time, gone on with where the files are.

The folder holds a manifest, which says what is wanted (``queue_plan.py``), and one ordinary run file for each run. What
has been done is read from those files (``queue_state.py``) and is written down nowhere else, so that a killed process
leaves nothing to be repaired.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from grpo_core.errors import Cancelled, NonFiniteError, RunFileError
from grpo_core.host.language import continuation_note
from grpo_core.learners import learner, never
from grpo_core.metrics import metrics
from grpo_core.queue.queue_plan import MANIFEST, Planned, Queue, axis, begin, end, planned, read
from grpo_core.queue.queue_state import Result, RunStatus, results, run_status, trouble_beside, unfinished
from grpo_core.runs.files import in_use, lock, release
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point
from grpo_core.text import tr

__all__ = [
    "Planned", "Progress", "Queue", "Result", "RunStatus",
    "axis", "begin", "end", "planned", "read", "results", "run_status", "training", "unfinished", "work",
]  # fmt: skip


class Progress(NamedTuple):
    """One more update, or the early end of a run.

    Attributes:
        place: of the run in the queue.
        done: updates that it has now.
        scalars: the metrics of the update.
        left: seconds until the queue is done, at the pace so far.
        trouble: why the run ends here, without another update; else empty.
        note: with the first update of a run that is gone on with: that another engine does it, or how far the replay
            differs; else empty.
    """

    place: int
    done: int
    scalars: Mapping[str, float]
    left: float
    trouble: str = ""
    note: str = ""


def work(
    folder: Path,
    *,
    cancelled: Callable[[], bool] = never,
    progress: Callable[[Progress], None] = lambda report: None,
) -> bool:
    """Go on with the queue in ``folder`` (:func:`training`), and tell ``progress`` after every update.

    Returns:
        Whether everything is done.
    """
    try:
        for report in training(folder, cancelled):
            progress(report)
    except Cancelled:
        return False
    return True


def training(folder: Path, cancelled: Callable[[], bool]) -> Iterator[Progress]:
    """Go on with the queue in ``folder`` where its files end, and yield after every update.

    A run with a number that is not finite ends there, with the sentence beside its file; the others go on.

    Args:
        folder: of the queue.
        cancelled: asked before every token and every pass.

    Raises:
        Cancelled: ``cancelled`` turned true; what was finished stays.
        RunFileError: somebody else works on the queue, or a run cannot be written.
        GrpoError: the runs cannot be trained here.
    """
    queue = read(folder)
    with claimed(folder):
        statuses = [run_status(folder, run) for run in queue.runs]
        pace = Pace(sum(queue.updates - one.done for one in statuses if not one.finished(queue)))
        busy: RunFileError | None = None
        for place, run in enumerate(queue.runs):
            if statuses[place].finished(queue):
                continue
            path = folder / run.file
            try:
                for done, scalars, note in trained_until(path, run, queue.updates, cancelled):
                    yield Progress(place, done, scalars, pace.lap(), note=note)
            except NonFiniteError as error:
                pace.give_up(queue.updates - error.step + 1)
                trouble_beside(path).write_text(str(error), encoding="utf-8")
                yield Progress(place, error.step - 1, {}, pace.left, str(error))
            except RunFileError:
                if not in_use(path):
                    raise
                busy = RunFileError(
                    tr("{title} is being trained in a window; close it there, then go on here.").format(title=run.title)
                )
        if busy is not None:
            raise busy


def trained_until(
    path: Path, run: Planned, updates: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Mapping[str, float], str]]:
    """Train a run on until it has so many updates, and yield after each how many it has, its metrics, and what is to be
    known of how it was taken up."""
    from grpo_core.lm.learner import PolicyLearner

    there = path.exists()
    with RunWriter.open(path) if there else RunWriter.create(path, run.settings, title=run.title) as writer:
        with RunReader.open(path) as reader:
            training = learner(run.settings, resume=resume_point(reader), earlier=reader.step, cancelled=cancelled)
        note = continuation_note(training) if isinstance(training, PolicyLearner) else ""
        for done in range(writer.committed + 1, updates + 1):
            step = next(training)
            scalars = metrics(step)
            writer.append(step, scalars)
            yield done, scalars, note
            note = ""
            if writer.full:
                raise RunFileError(writer.full)


class Pace:
    """An estimate of the remaining time, at the mean pace so far."""

    def __init__(self, updates: int) -> None:
        self._updates, self._done, self._began = updates, 0, time.monotonic()

    @property
    def left(self) -> float:
        """Seconds until the last update."""
        return max(self._updates, 0) * (time.monotonic() - self._began) / max(self._done, 1)

    def lap(self) -> float:
        """One update is done. Seconds until the last."""
        self._updates, self._done = self._updates - 1, self._done + 1
        return self.left

    def give_up(self, updates: int) -> None:
        """So many will not be computed."""
        self._updates -= updates


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Nobody else works on the queue meanwhile."""
    try:
        claim = lock(folder / MANIFEST)
    except RunFileError:
        if not in_use(folder / MANIFEST):
            raise
        raise RunFileError(
            tr("Somebody else is training the runs of {folder}; wait, or stop them there.").format(folder=folder)
        ) from None
    try:
        yield
    finally:
        release(claim)
