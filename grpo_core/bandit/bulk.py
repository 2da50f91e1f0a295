"""Thousands of runs at once, split over the processor's cores.

NumPy gives the interpreter's lock away inside its loops, so threads share the work where these are long. With fewer
runs the interpreter's own part between two loops is too large: then one thread alone is faster.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from grpo_core.bandit.simulate import Update, updates
from grpo_core.config import Settings

LEAST = 4096
"""Runs that are worth a thread."""


def bulk_updates(
    settings: Settings, seeds: Sequence[int], *, threads: int | None = None
) -> Iterator[tuple[Update, ...]]:
    """Update after update of one run a seed, without end: one :class:`Update` a thread, together in the seeds' order.

    The numbers are those of :func:`grpo_core.bandit.simulate.updates`, bit for bit, however the runs are split.

    Args:
        settings: of all runs; its numeric fields are plain numbers.
        seeds: (R,).
        threads: the most that are used, one a processor core by default.
    """
    wanted = max(1, min(threads or os.cpu_count() or 1, len(seeds) // LEAST))
    size = math.ceil(len(seeds) / wanted)
    parts = [updates(settings, seeds[first : first + size]) for first in range(0, len(seeds), size)]
    if len(parts) == 1:
        for done in parts[0]:
            yield (done,)
    with ThreadPoolExecutor(len(parts)) as pool:
        while True:
            yield tuple(pool.map(next, parts))
