"""A job in parts, computed by several processes. Each process takes the next part when it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from app.jobs.cores import free_cores
from app.jobs.jobs import IDLE, Jobs, computed
from grpo_core.config import Settings
from grpo_core.errors import Cancelled
from grpo_core.experiments.ensemble import Ensemble, portions
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.jobs.job_process import JobProcess

PATIENCE = 5.0
"""Seconds that a thread has to end after its part was cancelled, and that its process then has before it is killed."""


class _Arrival(NamedTuple):
    """A result of the part ``place``, the completion of that part, or the error that ended a thread."""

    place: int
    result: Any = None
    complete: bool = False
    error: Exception | None = None


class _Parts:
    """The parts of a job, shared by the threads that compute them.

    Attributes:
        awaited: the part whose results are needed next; the others are computed in advance.
        arrivals: the results of the threads.
    """

    def __init__(self, job: str, parts: Sequence[Sequence[object]], poll: Callable[[], None]) -> None:
        self.awaited = 0
        self.arrivals: SimpleQueue[_Arrival] = SimpleQueue()
        self._job, self._parts, self._poll = job, parts, poll
        self._lock = Lock()
        self._left = iter(range(len(parts)))
        self._given_up = False

    def give_up(self) -> None:
        """Cancel the running parts, and start no more."""
        with self._lock:
            self._given_up = True

    def take(self) -> int | None:
        """Return the next part that no thread has taken yet, or None if there is none or the job is cancelled."""
        with self._lock:
            return None if self._given_up else next(self._left, None)

    def results(self, process: JobProcess | None, place: int) -> Iterator[Any]:
        """Yield the results of one part.

        The caller's poll is called only for the awaited part, as if that were the only one.
        """

        def poll() -> None:
            if self._given_up:
                raise Cancelled(tr("The experiment was cancelled."))
            if place == self.awaited:
                self._poll()

        return computed(process, self._job, self._parts[place], poll)


class _Worker(Thread):
    """A thread that computes one part after another in a process that it borrows.

    If no process is available, the first thread computes by itself, and the others do nothing.

    Attributes:
        has_begun: whether it has its process, and will therefore end soon after the parts are cancelled.
    """

    def __init__(self, jobs: Jobs, parts: _Parts, *, first: bool) -> None:
        super().__init__(name="part of an experiment", daemon=True)
        self.has_begun = False
        self._jobs, self._parts, self._first = jobs, parts, first

    def run(self) -> None:
        """Compute until no part is left, or one fails."""
        arrivals = self._parts.arrivals
        try:
            with self._jobs.lent() as process:
                if process is None and not self._first:
                    return
                self.has_begun = True
                while (place := self._parts.take()) is not None:
                    for result in self._parts.results(process, place):
                        arrivals.put(_Arrival(place, result=result))
                    arrivals.put(_Arrival(place, complete=True))
        except Exception as error:  # raised again in the thread that waits for the results
            arrivals.put(_Arrival(0, error=error))


def shared_ensembles(
    jobs: Jobs, points: Sequence[Settings], seeds: int, updates: int, *, poll: Callable[[], None]
) -> Iterator[Ensemble]:
    """Compute :func:`grpo_core.experiments.ensemble.ensembles` of seeds 0 to ``seeds`` - 1.

    A bandit's runs are computed on the cluster if one is selected. Otherwise the work is shared by several processes if
    there are enough runs and free cores: with one core busy, two processes take longer than one, because the result
    waits for the slower one. ``poll`` and errors are as in :func:`shared_results`.
    """
    language = bool(points) and points[0].is_language
    if jobs.cluster is not None and not language:
        yield from jobs.spread("ensembles", points, tuple(range(seeds)), updates, poll=poll)
        return
    processes = min(IDLE, free_cores())
    portion = [[point] for point in points] if language else portions(points, seeds, processes)
    parts = [(part, tuple(range(seeds)), updates) for part in portion]
    yield from shared_results(jobs, "ensembles", parts, processes=processes, poll=poll)


def shared_results(
    jobs: Jobs, job: str, parts: Sequence[Sequence[object]], *, processes: int, poll: Callable[[], None]
) -> Iterator[Any]:
    """Yield the results of ``job`` for the arguments of each part, in the order of the parts.

    A process that is still starting takes part when it is ready, and finds nothing to do if the others were faster.

    Args:
        jobs: the pool of processes.
        job: name of the job in :func:`grpo_core.jobs.table.jobs`.
        parts: the arguments of each part.
        processes: maximum number of processes that compute at the same time.
        poll: called from other threads, about once per pass of the awaited part.

    Raises:
        Cancelled: ``poll`` raised it.
        GrpoError: the job cannot be computed, for the reason in the message, or a process has ended.
    """
    if not jobs.own_process or min(processes, len(parts)) < 2:
        for part in parts:
            yield from jobs.results(job, *part, poll=poll)
        return
    shared = _Parts(job, parts, poll)
    workers = [_Worker(jobs, shared, first=number == 0) for number in range(min(processes, len(parts)))]
    results: list[list[Any]] = [[] for _ in parts]
    complete: set[int] = set()
    for worker in workers:
        worker.start()
    try:
        for place, ready in enumerate(results):
            shared.awaited = place
            while ready or place not in complete:
                if ready:
                    yield ready.pop(0)
                    continue
                arrival = shared.arrivals.get()
                if arrival.error is not None:
                    raise arrival.error
                if arrival.complete:
                    complete.add(arrival.place)
                else:
                    results[arrival.place].append(arrival.result)
    finally:
        shared.give_up()
        for worker in workers:
            if worker.has_begun:
                worker.join(PATIENCE)
