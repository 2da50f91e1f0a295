"""A queue of runs in a folder, trained one after the other, that can be interrupted at any time and resumed from its
files.

The folder contains a manifest with the plan (``queue_plan.py``) and one ordinary run file for each run. Progress is
read from those files and stored nowhere else, so that a killed process leaves nothing to repair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from grpo_core.errors import NonFiniteError, RunFileError
from grpo_core.host.language import continuation_note
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.queue.queue_plan import (
    MANIFEST,
    Planned,
    Queue,
    Result,
    RunStatus,
    axis,
    begin,
    end,
    planned,
    read,
    results,
    run_status,
    trouble_beside,
    unfinished,
)
from grpo_core.runs.files import in_use, lock, release
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point
from grpo_core.text import tr

__all__ = [
    "Planned", "Progress", "Queue", "Result", "RunStatus",
    "axis", "begin", "end", "messages", "planned", "read", "results", "run_status", "training", "unfinished",
]  # fmt: skip # names, several per line


class Progress(NamedTuple):
    """Progress of a queue: one more update, or the early end of a run.

    Attributes:
        place: index of the run in the queue.
        done: number of finished updates of that run.
        left: estimated seconds until the queue is finished.
        trouble: why the run ends here, without another update; empty otherwise.
        note: on the first update of a resumed run, whether another engine continues it, or how far the replay differs;
            empty otherwise.
    """

    place: int
    done: int
    scalars: Mapping[str, float]
    left: float
    trouble: str = ""
    note: str = ""


def training(folder: Path, cancelled: Callable[[], bool]) -> Iterator[Progress]:
    """Continue the queue in ``folder`` from its files, and yield after every update.

    A run with a non-finite number ends there, with the error message in a file next to its own; the others continue.

    Args:
        cancelled: called before every token and every pass.

    Raises:
        Cancelled: ``cancelled`` returned True; finished updates are kept.
        RunFileError: another process is working on the queue, or a run cannot be written.
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
                busy = in_window(run)
        if busy is not None:
            raise busy


def in_window(run: Planned) -> RunFileError:
    """Return the error that a run of the queue is being trained in a window."""
    text = tr("{title} is being trained in a window; close it there, then continue here.")
    return RunFileError(text.format(title=run.title))


def trained_until(
    path: Path, run: Planned, updates: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Mapping[str, float], str]]:
    """Train a run until it has ``updates`` updates. After each update, yield the number of updates, the update's
    metrics, and a note on how the run was resumed, which is empty after the first update.
    """
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


def messages(folder: Path, work: Iterator[Progress]) -> Iterator[tuple[int, RunStatus, float | None] | None]:
    """Yield the index of a run of the queue in ``folder``, its status and the estimated seconds left: for each run
    without an estimate, then None when ``work`` begins, then for every update of ``work``.
    """
    statuses = [run_status(folder, run) for run in read(folder).runs]
    yield from ((place, status, None) for place, status in enumerate(statuses))
    yield None
    for report in work:
        statuses[report.place] = statuses[report.place].after(report.done, report.scalars, report.trouble, report.note)
        yield report.place, statuses[report.place], report.left


class Pace:
    """Estimate of the remaining time from the mean pace so far."""

    def __init__(self, updates: int) -> None:
        self._updates, self._done, self._began = updates, 0, time.monotonic()

    @property
    def left(self) -> float:
        return max(self._updates, 0) * (time.monotonic() - self._began) / max(self._done, 1)

    def lap(self) -> float:
        """Count one finished update. Return the estimated seconds until the last one."""
        self._updates, self._done = self._updates - 1, self._done + 1
        return self.left

    def give_up(self, updates: int) -> None:
        self._updates -= updates


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Context manager that locks the queue against other processes."""
    try:
        claim = lock(folder / MANIFEST)
    except RunFileError:
        if not in_use(folder / MANIFEST):
            raise
        raise RunFileError(
            tr("Another program is training the runs of {folder}; wait for it, or stop it first.").format(folder=folder)
        ) from None
    try:
        yield
    finally:
        release(claim)
