"""A sweep of 11 betas x 1,024 seeds x 200 updates on two workers of a cluster on this machine, compared with two
processes.

    python -m benchmarks.bench_cluster

Both get the same parts and return every result. They take turns; times are medians of five, without the start of
workers and processes. The processor time of all processes involved is also given, since it is reliable even on a busy
machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import psutil

from app.jobs.jobs import Jobs
from app.jobs.shared_job import shared_results
from benchmarks.table import measured
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import portions
from grpo_core.experiments.sweep import BETAS, grid
from grpo_core.jobs.cluster import Cluster
from grpo_core.progress import unpolled

SEEDS, UPDATES, ROUNDS = tuple(range(1024)), 200, 5


def processor_seconds() -> float:
    """Return the processor time used so far by this process and all its descendants."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def timed(call: Callable[[], list[object]]) -> tuple[float, float]:
    """Return the wall time and the processor time of a call, in seconds."""
    before, began = processor_seconds(), time.perf_counter()
    if len(call()) != len(BETAS):
        raise SystemExit("a sweep has lost a place")
    return time.perf_counter() - began, processor_seconds() - before


def main() -> None:
    """Print the times of cluster and processes, and their ratio."""
    points = grid(Settings(), {"objective.beta": BETAS})
    parts = [(part, SEEDS, UPDATES) for part in portions(points, len(SEEDS), 2)]
    jobs = Jobs(own_process=True)
    try:
        with Cluster("local:2") as there:
            ways: dict[str, Callable[[], list[object]]] = {
                "two processes": lambda: list(shared_results(jobs, parts, processes=2, poll=unpolled)),
                "local:2": lambda: list(there.ensembles(points, SEEDS, UPDATES, poll=unpolled)),
            }
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
            for number in range(ROUNDS + 1):
                for name, way in ways.items():
                    taken = timed(way)
                    if number:  # the first is a warm-up
                        times[name].append(taken)
    finally:
        jobs.close()
    middle = {name: [statistics.median(column) for column in zip(*taken, strict=True)] for name, taken in times.items()}
    for name, (seconds, processor) in middle.items():
        print(f"  {name:14} {seconds:6.2f} s, {processor:6.2f} s of processor time")
    seconds, processor = (there / here for here, there in zip(*middle.values(), strict=True))
    print(f"  local:2 takes {seconds:.2f} times as long, and {processor:.2f} times the processor time")
    measured("cluster", seconds)


if __name__ == "__main__":
    main()
