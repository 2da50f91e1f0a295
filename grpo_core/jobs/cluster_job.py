"""Experiments on a cluster as a job (``jobs.py``). A child process communicates with the scheduler and passes the
results on, so that no window has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from grpo_core.child.answering import Poll
from grpo_core.experiments.digest import Digest, raced
from grpo_core.jobs.cluster import Cluster
from grpo_core.jobs.queue_cluster import training
from grpo_core.queue.queue import messages


def on_cluster(where: str, job: str, *arguments: object, poll: Poll) -> Iterator[object]:
    """Yield the results of ``job``, one of :data:`ON_CLUSTERS`, computed by the workers of the cluster ``where``.

    Arguments and results are those of the job of that name in :func:`grpo_core.jobs.table.jobs`; ``poll`` is called a
    few times a second, regardless of the workers' progress.

    Raises:
        GrpoError: as raised by :class:`grpo_core.jobs.cluster.Cluster` or by the job.
    """
    with closing(Cluster(where, poll)) as there:
        yield from ON_CLUSTERS[job](there, *arguments, poll=poll)


def _race(there: Cluster, *arguments: Any, poll: Poll) -> Iterator[Digest]:
    return raced(*arguments, poll=poll, train=there.ensembles)


def _queue(there: Cluster, folder: str, *, poll: Poll) -> Iterator[object]:
    return messages(Path(folder), training(there, Path(folder), poll))


ON_CLUSTERS: dict[str, Callable[..., Iterator[object]]] = {
    "ensembles": Cluster.ensembles,
    "race": _race,
    "repeats": Cluster.repeats,
    "queue": _queue,
}
"""The jobs that can run on a cluster, by name."""
