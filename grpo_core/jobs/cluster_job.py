"""Experiments on a cluster as a job (``jobs.py``). A child process communicates with the scheduler and passes the
results on, so that no window has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from grpo_core.child.answering import Poll
from grpo_core.config import Settings
from grpo_core.experiments.digest import Digest, digested
from grpo_core.experiments.race import race
from grpo_core.jobs.cluster import Cluster, cluster
from grpo_core.jobs.queue_cluster import training
from grpo_core.queue.queue_job import messages


def on_cluster(where: str, job: str, *arguments: object, poll: Poll) -> Iterator[object]:
    """Yield the results of ``job``, one of :data:`ON_CLUSTERS`, computed by the workers of the cluster ``where``.

    Arguments and results are those of the job of that name in :func:`grpo_core.jobs.table.jobs`; ``poll`` is called a
    few times a second, regardless of the workers' progress.

    Raises:
        GrpoError: as raised by :class:`grpo_core.jobs.cluster.Cluster` or by the job.
    """
    with cluster(where, poll) as there:
        yield from ON_CLUSTERS[job](there, *arguments, poll=poll)


def _ensembles(
    there: Cluster, points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Poll
) -> Iterator[object]:
    return there.ensembles(points, seeds, updates, poll=poll)


def _race(
    there: Cluster,
    settings: Settings,
    names: Sequence[str],
    seeds: int,
    updates: int,
    fairness: str,
    own_mu: bool = False,
    *,
    poll: Poll,
) -> Iterator[Digest]:
    return digested(
        race(
            settings,
            names,
            seeds=range(seeds),
            updates=updates,
            fairness=fairness,
            own_mu=own_mu,
            poll=poll,
            train=there.ensembles,
        )
    )


def _repeats(there: Cluster, settings: Settings, seeds: Sequence[int], count: int, *, poll: Poll) -> Iterator[object]:
    return there.repeats(settings, seeds, count, poll=poll)


def _queue(there: Cluster, folder: str, *, poll: Poll) -> Iterator[object]:
    return messages(Path(folder), training(there, Path(folder), poll))


ON_CLUSTERS: dict[str, Callable[..., Iterator[object]]] = {
    "ensembles": _ensembles,
    "race": _race,
    "repeats": _repeats,
    "queue": _queue,
}
"""The jobs that can run on a cluster, by name."""
