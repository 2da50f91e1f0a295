"""Number of processor cores that an experiment can use, and how many of them are free."""

from __future__ import annotations

import os
import re
from pathlib import Path

STAT = Path("/proc/stat")


def allowed_cores() -> int:
    """Return the number of cores on which this process may run.

    If the process has a CPU affinity, this is less than the machine's total.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_cores() -> int:
    """Return the number of allowed cores that are currently free, at least 1.

    On systems without ``/proc/stat`` (Windows, macOS), or without a load average (Wine, which has that file), all
    allowed cores count as free.
    """
    try:
        running = re.search(r"^procs_running (\d+)", STAT.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        running = None
    if running is None or not hasattr(os, "getloadavg"):
        return allowed_cores()
    return left_free(allowed_cores(), int(running[1]), os.getloadavg()[0])


def left_free(cores: int, running: int, load: float) -> int:
    """Return how many of the ``cores`` are free, at least 1.

    The number of busy cores is the lower of two figures, because a thread may run just for a moment, and the load still
    includes the previous experiment.

    Args:
        running: number of threads that run or wait for a core now, including the caller's.
        load: average number of such threads over the last minute.
    """
    busy = max(0, min(running - 1, round(load)))
    return max(1, cores - busy)
