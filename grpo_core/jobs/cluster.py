"""Jobs on a cluster: the same calls as in a local child process, answered by workers of Dask ``distributed``.

The protocol is in ``cluster_calls.py``. docs/clusters.md warns that anyone who can reach a scheduler can run code on
its workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from grpo_core import __version__
from grpo_core.bandit.simulate import never
from grpo_core.config import Settings
from grpo_core.errors import GrpoError, shortened
from grpo_core.experiments.ensemble import Ensemble, portions
from grpo_core.experiments.repeats import Repeats
from grpo_core.jobs.cluster_calls import Crossing, answered, apart, opened_result, sealed, versions
from grpo_core.jobs.slurm import SlurmJobs, described, submit
from grpo_core.text import tr

Key = TypeVar("Key")
CONNECTS, LOST = 10, 30
"""Times in seconds within which a scheduler must answer, and after which an unresponsive one counts as lost."""
PAUSE = 0.1
"""Interval in seconds between two checks for cancellation."""
NEEDED = tr("A cluster needs the package “distributed”; install GRPO Lab with the extra “cluster”.")
CALLS_PER_WORKER = 2
"""Number of parts, per worker, into which an experiment is divided. Smaller parts shorten the wait for the last one."""


class Cluster:
    """Workers that answer calls.

    Args:
        where: the address of a scheduler (``tcp://host:8786``), a scheduler's file with the address (``….json``),
            “local” for workers on this machine, “local:4” for four of them, or “slurm:FILE” for SLURM jobs as described
            by :class:`grpo_core.jobs.slurm.SlurmJobs`.
        poll: called while waiting for the first SLURM job; can raise an exception to cancel.

    Raises:
        GrpoError: no scheduler answers, it has no worker, a worker's versions differ, or ``distributed`` is not
            installed.
    """

    def __init__(self, where: str, poll: Callable[[], None] = never) -> None:
        try:
            import distributed
        except ImportError:
            raise GrpoError(NEEDED) from None
        if not where.strip():
            raise GrpoError(tr("Give the address of a scheduler, such as tcp://HOST:8786, or its scheduler file."))
        self.where, self._own, self._coming = where, None, 0
        kind, _, rest = where.partition(":")
        options: dict[str, Any] = {"timeout": CONNECTS, "set_as_default": False}
        try:
            if kind == "local":
                self._own = distributed.LocalCluster(
                    n_workers=int(rest) if rest else None, threads_per_worker=1, dashboard_address=None
                )
                self._client = distributed.Client(self._own, direct_to_workers=True, **options)
            elif kind == "slurm":
                jobs = SlurmJobs.read(Path(rest))
                self._own, self._coming = described(jobs), jobs.jobs * jobs.cores
                self._client = distributed.Client(self._own, **options)
            elif where.endswith(".json"):
                self._client = distributed.Client(scheduler_file=where, **options)
            else:
                self._client = distributed.Client(where, **options)
        except (OSError, ValueError, TimeoutError) as error:
            raise GrpoError(
                tr(
                    "No scheduler responds at {where} ({error}). Give the address of a scheduler, its scheduler "
                    "file, or “local”; docs/clusters.md shows how to start one."
                ).format(where=where, error=shortened(error))
            ) from None
        try:
            if kind == "slurm":
                submit(self._own, jobs.jobs)
                while not self._client.nthreads():
                    poll()
                    time.sleep(PAUSE)
            self._require_same_versions()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect from the scheduler. Workers started by this object end."""
        self._client.close(timeout=2)
        if self._own is not None:
            self._own.close()

    @property
    def workers(self) -> int:
        """Number of calls that can run at once, including those on jobs that have yet to begin."""
        return max(sum(int(count) for count in self._client.nthreads().values()), self._coming, 1)

    def _require_same_versions(self) -> None:
        if not self._client.nthreads():
            raise GrpoError(tr("The scheduler at {where} has no workers.").format(where=self.where))
        try:
            found: Mapping[str, Mapping[str, str]] = self._client.run(versions)
        except Exception as error:  # a worker without the package can answer anything
            raise GrpoError(
                tr("A worker cannot run GRPO Lab {version} ({error}); install the same version there.").format(
                    version=__version__, error=shortened(error)
                )
            ) from None
        for worker, theirs in found.items():
            sentence = apart(theirs)
            if sentence:
                raise GrpoError(tr("The worker {worker} {sentence}").format(worker=worker, sentence=sentence))

    # -- calls -----------------------------------------------------------------------------------------------------

    def asked(self, call: str, *arguments: object) -> Any:
        """Submit the call named ``call``, a key of :data:`CALLS`. Return Dask's future."""
        return self._client.submit(answered, call, sealed(arguments), versions(), pure=False)

    def answers(self, waiting: dict[Any, Key], poll: Callable[[], None]) -> Iterator[tuple[Key, Any]]:
        """Yield the result of each call as it arrives. Calls added to ``waiting`` meanwhile are included.

        A call whose worker is lost is repeated by another one. ``poll`` is called regularly; an exception in it cancels
        the remaining calls.

        Raises:
            GrpoError: a call failed, or the scheduler is lost.
        """
        from distributed import wait

        silent = 0.0
        try:
            while waiting:
                poll()
                # a timeout, or futures lost with their scheduler
                with suppress(TimeoutError, CancelledError), self._client.as_current():
                    wait([*waiting], timeout=PAUSE, return_when="FIRST_COMPLETED")
                silent = 0.0 if self._client.status == "running" else silent + PAUSE
                if silent > LOST or self._client.status == "closed":
                    raise self._lost()
                for future in [each for each in waiting if each.done()]:
                    answer = self._answer(future)
                    if answer is not None:
                        yield waiting.pop(future), opened_result(answer)
        finally:
            if waiting and self._client.status == "running":
                self._client.cancel([*waiting])

    def _lost(self) -> GrpoError:
        return GrpoError(
            tr(
                "The connection to the scheduler at {where} was lost. Finished work is kept; start the same job again "
                "to continue."
            ).format(where=self.where)
        )

    def _answer(self, future: Any) -> Crossing | None:
        """Return the answer to a call, or None if its worker was lost, so that it must be repeated."""
        status = future.status
        if status == "cancelled":
            raise self._lost()
        if status == "error":
            raise GrpoError(tr("The cluster failed: {error}.").format(error=shortened(future.exception())))
        if status != "finished":
            return None
        try:
            crossing: Crossing = future.result(timeout=CONNECTS)
        except TimeoutError:
            return None
        except CancelledError:
            raise self._lost() from None
        return crossing

    def ensembles(
        self, points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None]
    ) -> Iterator[Ensemble]:
        """Train ensembles on the cluster, in the same order and with the same bits as
        :func:`grpo_core.experiments.ensemble.ensembles`.

        The workers begin at once, before the first ensemble is requested.
        """
        parts = portions(points, len(seeds), CALLS_PER_WORKER * self.workers)
        waiting = {self.asked("ensembles", part, tuple(seeds), updates): place for place, part in enumerate(parts)}
        return self._in_order(waiting, poll)

    def _in_order(self, waiting: dict[Any, int], poll: Callable[[], None]) -> Iterator[Ensemble]:
        came: dict[int, list[Ensemble]] = {}
        following = 0
        for place, result in self.answers(waiting, poll):
            came[place] = result
            while following in came:
                yield from came.pop(following)
                following += 1

    def repeats(
        self, settings: Settings, seeds: Sequence[int], count: int, *, poll: Callable[[], None]
    ) -> Iterator[Repeats]:
        """Repeat updates on the cluster, like :func:`grpo_core.experiments.repeats.repeated`, bit for bit. All results
        are yielded at the end.

        This is a single call: computing so few runs together takes no longer than computing half of them.
        """
        for _, parts in self.answers({self.asked("repeats", settings, tuple(seeds), count): 0}, poll):
            yield from parts


@contextmanager
def cluster(where: str, poll: Callable[[], None] = never) -> Iterator[Cluster]:
    """Context manager of a cluster. For arguments and errors see :class:`Cluster`."""
    found = Cluster(where, poll)
    try:
        yield found
    finally:
        found.close()
