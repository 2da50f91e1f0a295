"""Experiments in a separate process, one cancellable job at a time, with results sent as messages
(``grpo_core/child``).

The workers of a cluster can compute some of the jobs. A child process communicates with the scheduler and passes the
results on, so that no window has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grpo_core import parts
from grpo_core.child.answering import Answer, Poll, answer
from grpo_core.config import Settings, language_settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.language_ensemble import language_ensembles
from grpo_core.experiments.race import raced
from grpo_core.experiments.repeats import repeated
from grpo_core.jobs.cluster import Cluster
from grpo_core.learners import language_learner
from grpo_core.packing import packed, unpacked
from grpo_core.queue.training import training
from grpo_core.record import Step
from grpo_core.what_if.advice import tried

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def trained(points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Poll) -> Iterator[Ensemble]:
    """Train all seeds at every point: all points are the bandit's, or all are the built-in language model's.

    Runs of the bandit that diverge are not an error; their numbers become infinite or NaN.

    Raises:
        SettingsError: the seeds of a point cannot be trained together, or a model comes from a folder.
    """
    train = language_ensembles if points and points[0].is_language else ensembles
    with np.errstate(over="ignore", invalid="ignore"):
        yield from train(points, seeds, updates, poll=poll)


def first_updates(points: Sequence[Settings], *, poll: Poll) -> Iterator[Step]:
    """Yield the first update of a language model at each of ``points``."""
    for settings in points:
        yield next(language_learner(settings, [], poll))


def ledger(*, poll: Poll) -> Iterator[dict[str, object]]:
    """Yield the memory used by the shipped language model after its first update: the blocks, the bytes of all
    tensors, and the bytes allocated by torch. The last two are None without torch, and the last one also on the
    CPU.
    """
    from grpo_core.lm.engines import ENGINES, torch_is_there
    from grpo_core.lm.interface import NUMPY, TORCH
    from grpo_core.lm.learner import LanguageLearner

    engine = TORCH if torch_is_there() else NUMPY
    learner = LanguageLearner(language_settings(), poll=poll, make_policy=ENGINES[engine])
    next(learner)
    yield learner.policy.ledger()


def on_cluster(where: str, job: str, *arguments: object, poll: Poll) -> Iterator[object]:
    """Yield the results of ``job``, one of :data:`ON_CLUSTERS`, computed by the workers of the cluster ``where``.

    Arguments and results are those of the job of that name in :data:`JOBS`; ``poll`` is called a few times a second,
    regardless of the workers' progress.

    Raises:
        GrpoError: as raised by :class:`grpo_core.jobs.cluster.Cluster` or by the job.
    """
    with Cluster(where, poll) as there:
        yield from ON_CLUSTERS[job](there, *arguments, poll=poll)


JOBS: dict[str, Answer] = {
    "advice": tried,
    "ensembles": trained,
    "race": raced,
    "cluster": on_cluster,
    "repeats": repeated,
    "first_updates": first_updates,
    "ledger": ledger,
    "queue": training,
}
"""The lab's jobs by name. Arguments and results are types that :mod:`grpo_core.packing` supports."""
ON_CLUSTERS: dict[str, Callable[..., Iterator[object]]] = {
    one.__name__: one for one in (Cluster.ensembles, Cluster.race, Cluster.repeats, Cluster.queue)
}
"""Those that can run on a cluster, by name."""


def jobs() -> dict[str, Answer]:
    """Return all jobs by name, those of the parts included."""
    return {**JOBS, **parts.merged("jobs")}


def serve(connection: Connection) -> None:
    """Serve jobs from ``connection`` until it closes."""
    answer(connection, jobs(), packed, unpacked)
