"""Processor cores that an experiment may use, and those of them that nothing else keeps busy."""

from __future__ import annotations

import os
import re
from pathlib import Path

STAT = Path("/proc/stat")


def allowed_cores() -> int:
    """Cores that the system lets this process run on, which are fewer than it has where an affinity is set."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_cores() -> int:
    """Allowed cores that are free at this moment, at least 1.

    Where the system has no ``/proc/stat`` (Windows, macOS) all that are allowed count as free.
    """
    try:
        running = re.search(r"^procs_running (\d+)", STAT.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        running = None
    if running is None:
        return allowed_cores()
    return left_free(allowed_cores(), int(running[1]), os.getloadavg()[0])


def left_free(cores: int, running: int, load: float) -> int:
    """Number of the ``cores`` that are free, at least 1.

    Both figures have to say that a core is busy: a thread may run for a moment alone, and the load still counts what
    the experiment before this one computed.

    Args:
        cores: allowed cores.
        running: threads that run or wait for a core now, the one that asks included.
        load: their average over the last minute.
    """
    busy = max(0, min(running - 1, round(load)))
    return max(1, cores - busy)
