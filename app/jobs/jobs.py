"""Processes that compute experiments, so that the window's interpreter stays free."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from app.jobs.cores import allowed_cores
from grpo_core.errors import GrpoError
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.jobs.job_process import JobProcess

IDLE = min(2, allowed_cores())
"""Maximum number of idle processes kept for the next experiment, and of processes that share a sweep.

Starting a process takes half a second, and the process uses about 35 MB.
"""


class Jobs:
    """Computes the jobs of :func:`grpo_core.jobs.table.jobs`, for any number of threads at the same time.

    Each job is computed in a separate process, which is kept for the next job, or in the calling thread if processes
    are disabled or cannot be started. The results are the same.

    Attributes:
        own_process: whether processes are started; becomes False if one cannot be started.
        cluster: the scheduler that computes the jobs of :meth:`spread`, in the form expected by
            :class:`grpo_core.jobs.cluster.Cluster`; None for this machine.
    """

    def __init__(self, *, own_process: bool = False) -> None:
        self.own_process = own_process
        self.cluster: str | None = None
        self._lock = threading.Lock()
        self._all: set[JobProcess] = set()
        self._idle: list[JobProcess] = []
        self._closed = False

    def results(self, job: str, *arguments: object, poll: Callable[[], None]) -> Iterator[Any]:
        """Yield the results of a job as they are computed. ``poll`` is called about once per pass of the job.

        Raises:
            Cancelled: ``poll`` raised it.
            GrpoError: the job cannot be computed, for the reason in the message, or the process has ended.
        """
        with self.lent() as process:
            yield from computed(process, job, arguments, poll)

    def spread(self, job: str, *arguments: object, poll: Callable[[], None]) -> Iterator[Any]:
        """Yield results like :meth:`results`, but from the cluster if one is selected.

        The cluster is accessed by a separate process, never by the window's.

        Raises:
            GrpoError: as for :meth:`results`; or the cluster is unavailable, or no process can be started.
        """
        where = self.cluster
        if where is None:
            yield from self.results(job, *arguments, poll=poll)
            return
        with self.lent() as process:
            if process is None:
                raise GrpoError(
                    tr("A cluster needs a separate process, which this window cannot start; choose this machine.")
                )
            yield from process.results("cluster", [where, job, *arguments], poll)

    @contextmanager
    def lent(self) -> Iterator[JobProcess | None]:
        """Context manager that lends a process to one thread. A process is started if none is idle.

        Yields None if the thread has to compute by itself.
        """
        process = self._taken()
        try:
            yield process
        finally:
            if process is not None:
                self._returned(process)

    def close(self) -> None:
        """End every process, together with its computation."""
        with self._lock:
            self._closed, self._idle = True, []
            left, self._all = self._all, set()
        for process in left:
            process.kill()
        for process in left:
            process.close()

    def _taken(self) -> JobProcess | None:
        """Return a process that is ready for a job, or None if the calling thread has to compute."""
        from app.jobs.job_process import JobProcess

        with self._lock:
            gone = [process for process in self._idle if process.has_ended]
            self._idle = [process for process in self._idle if process not in gone]
            self._all.difference_update(gone)
        for process in gone:
            process.close()
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if not self.own_process or self._closed:
                return None
        try:
            process = JobProcess()
            process.await_ready()
        except GrpoError:
            self.own_process = False
            return None
        with self._lock:
            if not self._closed:
                self._all.add(process)
                return process
        process.close()
        return None

    def _returned(self, process: JobProcess) -> None:
        with self._lock:
            if process.usable and not self._closed and len(self._idle) < IDLE:
                self._idle.append(process)
                return
            self._all.discard(process)
        process.close()


def computed(
    process: JobProcess | None, job: str, arguments: Sequence[object], poll: Callable[[], None]
) -> Iterator[Any]:
    """Return an iterator over the results of a job, computed by ``process`` or, if that is None, in this thread.

    Errors are raised as in :meth:`Jobs.results`.
    """
    if process is None:
        from grpo_core.jobs.table import jobs

        return jobs()[job](*arguments, poll=poll)
    return process.results(job, arguments, poll)
