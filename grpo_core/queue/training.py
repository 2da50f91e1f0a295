"""The training of a queue of runs, one after the other. It can be interrupted at any time and resumed from its files.

Progress is read from the run files and stored nowhere else, so that a killed process leaves nothing to repair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grpo_core.errors import NonFiniteError, RunFileError
from grpo_core.host.language import continuation_note
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.queue.queue import MANIFEST, Planned, Progress, Queue, RunStatus, read, run_status, trouble_beside
from grpo_core.runs.files import in_use, lock, release
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point
from grpo_core.text import tr


class Work:
    """A queue that is being trained: the state of its runs, and the time left at the mean pace so far."""

    def __init__(self, folder: Path, queue: Queue) -> None:
        self.folder, self.queue = folder, queue
        self.statuses = [run_status(folder, run) for run in queue.runs]
        self._left = sum(queue.updates - one.done for one in self.statuses if not one.finished(queue))
        self._done, self._began = 0, time.monotonic()

    @property
    def unfinished(self) -> list[int]:
        """Indexes of the runs that are neither finished nor have ended early."""
        return [place for place, one in enumerate(self.statuses) if not one.finished(self.queue)]

    def before(self) -> Iterator[Progress]:
        """Yield the state of each run as found in its file."""
        return ((place, status, None) for place, status in enumerate(self.statuses))

    def finished(self, place: int, done: int, scalars: Mapping[str, float], note: str) -> Progress:
        """Record one more update of a run."""
        self._left, self._done = self._left - 1, self._done + 1
        return self._now(place, self.statuses[place].after(done, scalars, note=note))

    def given_up(self, place: int, done: int, why: str) -> Progress:
        """Record the early end of a run after update ``done``, with the reason in a file next to its own."""
        self._left -= self.queue.updates - done
        trouble_beside(self.folder / self.queue.runs[place].file).write_text(why, encoding="utf-8")
        return self._now(place, self.statuses[place].after(done, {}, why))

    def _now(self, place: int, status: RunStatus) -> Progress:
        self.statuses[place] = status
        return place, status, max(self._left, 0) * (time.monotonic() - self._began) / max(self._done, 1)


def training(folder: str | Path, poll: Callable[[], None]) -> Iterator[Progress]:
    """Continue the queue in ``folder`` from its files. Yield the state of each run, then after every update that of its
    run.

    A run with a non-finite number ends there, with the error message in a file next to its own; the others continue.

    Args:
        poll: called before every token and every pass; stops by raising ``Cancelled``.

    Raises:
        Cancelled: ``poll`` raised it; finished updates are kept.
        RunFileError: another process is working on the queue, or a run cannot be written.
        GrpoError: the runs cannot be trained here.
    """
    with claimed(Path(folder)) as work:
        yield from work.before()
        busy: RunFileError | None = None
        for place in work.unfinished:
            run = work.queue.runs[place]
            path = work.folder / run.file
            try:
                for update in trained_until(path, run, work.queue.updates, poll):
                    yield work.finished(place, *update)
            except NonFiniteError as error:
                yield work.given_up(place, error.step - 1, str(error))
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
    path: Path, run: Planned, updates: int, poll: Callable[[], None]
) -> Iterator[tuple[int, Mapping[str, float], str]]:
    """Train a run until it has ``updates`` updates. After each update, yield the number of updates, the update's
    metrics, and a note on how the run was resumed, which is empty after the first update.
    """
    from grpo_core.lm.learner import PolicyLearner

    there = path.exists()
    with RunWriter.open(path) if there else RunWriter.create(path, run.settings, title=run.title) as writer:
        with RunReader.open(path) as reader:
            training = learner(run.settings, resume=resume_point(reader), earlier=reader.step, poll=poll)
        note = continuation_note(training) if isinstance(training, PolicyLearner) else ""
        for done in range(writer.committed + 1, updates + 1):
            step = next(training)
            scalars = metrics(step)
            writer.append(step, scalars)
            yield done, scalars, note
            note = ""
            if writer.full:
                raise RunFileError(writer.full)


@contextmanager
def claimed(folder: Path) -> Iterator[Work]:
    """Context manager that locks the queue in ``folder`` against other processes, and begins the work on it."""
    queue = read(folder)
    try:
        claim = lock(folder / MANIFEST)
    except RunFileError:
        if not in_use(folder / MANIFEST):
            raise
        raise RunFileError(
            tr("Another program is training the runs of {folder}; wait for it, or stop it first.").format(folder=folder)
        ) from None
    try:
        yield Work(folder, queue)
    finally:
        release(claim)
