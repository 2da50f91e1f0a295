"""A sweep in parts, computed by several processes. Each process takes the next part when it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from queue import SimpleQueue
from threading import Event, Thread, current_thread

from app.jobs.cores import free_cores
from app.jobs.jobs import IDLE, Jobs, computed
from grpo_core.config import Settings
from grpo_core.errors import Cancelled
from grpo_core.experiments.ensemble import Ensemble, portions
from grpo_core.text import tr

PATIENCE = 5.0
"""Seconds that a thread has to end after its part was cancelled, and that its process then has before it is killed."""


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
    yield from shared_results(jobs, parts, processes=processes, poll=poll)


def shared_results(
    jobs: Jobs, parts: Sequence[Sequence[object]], *, processes: int, poll: Callable[[], None]
) -> Iterator[Ensemble]:
    """Yield the ensembles of each part, in the order of the parts.

    Each of several threads borrows a process, and computes one part after another. A process that is still starting
    takes part when it is ready, and finds nothing to do if the others were faster. If no process is available, the
    first thread computes by itself, and the others do nothing.

    Args:
        jobs: the pool of processes.
        parts: the arguments of the job “ensembles” for each part.
        processes: maximum number of processes that compute at the same time.
        poll: called from other threads, about once per pass of the part whose results are needed next.

    Raises:
        Cancelled: ``poll`` raised it.
        GrpoError: a part cannot be computed, for the reason in the message, or a process has ended.
    """
    if not jobs.own_process or min(processes, len(parts)) < 2:
        for part in parts:
            yield from jobs.results("ensembles", *part, poll=poll)
        return
    arrivals: SimpleQueue[tuple[int, list[Ensemble]] | Exception] = SimpleQueue()
    numbers, given_up, awaited = count(), Event(), 0
    begun: list[Thread] = []

    def compute(*, first: bool) -> None:
        place = 0

        def poll_awaited() -> None:
            if given_up.is_set():
                raise Cancelled(tr("The experiment was cancelled."))
            if place == awaited:
                poll()

        try:
            with jobs.lent() as process:
                if process is None and not first:
                    return
                begun.append(current_thread())  # from now on, it ends soon after the parts are given up
                while not given_up.is_set() and (place := next(numbers)) < len(parts):
                    arrivals.put((place, [*computed(process, "ensembles", parts[place], poll_awaited)]))
        except Exception as error:  # raised again in the thread that waits for the results
            arrivals.put(error)

    for number in range(min(processes, len(parts))):
        Thread(target=compute, kwargs={"first": number == 0}, name="part of a sweep", daemon=True).start()
    came: dict[int, list[Ensemble]] = {}
    try:
        for awaited in range(len(parts)):  # the threads read it
            while awaited not in came:
                arrival = arrivals.get()
                if isinstance(arrival, Exception):
                    raise arrival
                came |= [arrival]
            yield from came.pop(awaited)
    finally:
        given_up.set()
        for thread in begun:
            thread.join(PATIENCE)
