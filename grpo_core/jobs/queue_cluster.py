"""A queue of runs on a cluster: each call extends a run's file by a few updates and returns the file.

A call sends the file of a run and returns a longer one, which replaces it. All finished updates are therefore in the
folder, even if the worker, the scheduler or the client fails, and no update is stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.foreign.readers import Readers
from grpo_core.jobs.cluster import Cluster
from grpo_core.jobs.cluster_calls import Ran, unexpected
from grpo_core.queue.queue import Pace, Planned, Progress, Queue, claimed, in_window, read, run_status
from grpo_core.queue.queue_plan import trouble_beside
from grpo_core.runs.files import in_use, replacing
from grpo_core.runs.reader import RunReader
from grpo_core.text import tr


def training(cluster: Cluster, folder: Path, poll: Callable[[], None]) -> Iterator[Progress]:
    """Continue the queue in ``folder`` with all of its runs at once, and yield after every update.

    For arguments, yields and errors see :func:`grpo_core.queue.queue.training` and
    :class:`~grpo_core.jobs.cluster.Cluster`. ``poll`` can raise an exception to stop.
    """
    queue = read(folder)
    with claimed(folder):
        statuses = [run_status(folder, run) for run in queue.runs]
        pace = Pace(sum(queue.updates - one.done for one in statuses if not one.finished(queue)))
        waiting: dict[int, int] = {}
        for place, status in enumerate(statuses):
            if not status.finished(queue):
                waiting[_asked(cluster, folder, queue, place, status.done)] = place
        for place, answer in cluster.answers(waiting, poll):
            path = folder / queue.runs[place].file
            _require_free(path, queue.runs[place])
            with replacing(path) as temporary:
                temporary.write_bytes(answer["file"].tobytes())
                _require_own(temporary, queue.runs[place], answer, poll)
            done = answer["last"]
            for done, scalars, note in answer["made"]:
                yield Progress(place, done, scalars, pace.lap(), note=note)
            if answer["trouble"]:
                pace.give_up(queue.updates - done)
                trouble_beside(path).write_text(answer["trouble"], encoding="utf-8")
                yield Progress(place, done, {}, pace.left, answer["trouble"])
            elif done < queue.updates:
                waiting[_asked(cluster, folder, queue, place, done)] = place


def _asked(cluster: Cluster, folder: Path, queue: Queue, place: int, done: int) -> int:
    """Submit the next updates of a run, up to its next snapshot, so that nothing is replayed."""
    run = queue.runs[place]
    path, every = folder / run.file, run.settings.model.snapshot_every
    _require_free(path, run)
    file = path.read_bytes() if path.exists() else b""
    until = min((done // every + 1) * every, queue.updates)
    return cluster.asked("run", run.settings, run.title, until, np.frombuffer(file, np.uint8))


def _require_own(path: Path, run: Planned, answer: Ran, poll: Callable[[], None]) -> None:
    """Look at a run file from a worker in the process for untrusted files, and require that it holds this run.

    Raises:
        GrpoError: it is damaged, or it holds another run or other updates than the answer says.
    """
    try:
        Readers(own_process=True).is_converted(path, poll=poll)
        with RunReader.open(path) as reader:
            done = answer["made"][-1][0] if answer["made"] else reader.last
            if (reader.meta.settings, reader.last) != (run.settings, done):
                raise unexpected(tr("it contains another run, or other updates"))
    except RunFileError as error:
        raise unexpected(str(error).replace(path.name, run.file)) from None


def _require_free(path: Path, run: Planned) -> None:
    if path.exists() and in_use(path):
        raise in_window(run)
