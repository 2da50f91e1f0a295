"""Thousands of runs at once, split over the processor's cores.

NumPy gives the interpreter's lock away inside its loops, so threads share the work where these are long. With fewer
runs the interpreter's own part between two loops is too large: then one thread alone is faster.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from grpo_core.bandit.layout import keep_freed_memory
from grpo_core.bandit.simulate import Update, updates
from grpo_core.config import Settings

LEAST = 4096
"""Runs that are worth a thread."""
TOGETHER = 8192
"""Runs that are updated in one call: few enough that an array or two fit into the processor's cache, many enough that
the threads seldom wait for the interpreter's lock."""


def bulk_updates(
    settings: Settings, seeds: Sequence[int], *, threads: int | None = None
) -> Iterator[tuple[Update, ...]]:
    """Update after update of one run a seed, without end: an :class:`Update` for each part of the runs, together in the
    seeds' order.

    The numbers are those of :func:`grpo_core.bandit.simulate.updates`, bit for bit, however the runs are split.

    Args:
        settings: of all runs; its numeric fields are plain numbers.
        seeds: (R,).
        threads: the most that are used, one a processor core by default.
    """
    keep_freed_memory()
    count = max(1, min(threads or os.cpu_count() or 1, len(seeds) // LEAST))
    each = math.ceil(len(seeds) / (count * math.ceil(len(seeds) / (count * TOGETHER))))
    parts = [updates(settings, seeds[first : first + each]) for first in range(0, len(seeds), each)]
    if count == 1:
        while True:
            yield tuple(next(part) for part in parts)
    share = math.ceil(len(parts) / count)
    shares = [parts[first : first + share] for first in range(0, len(parts), share)]
    with ExitStack() as stack:
        # a thread of its own for each share: what it has in the cache of its core, it finds there again
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in shares]
        while True:
            waiting = [pool.submit(_next_of_each, own) for pool, own in zip(pools, shares, strict=True)]
            yield tuple(done for future in waiting for done in future.result())


def _next_of_each(parts: Sequence[Iterator[Update]]) -> list[Update]:
    return [next(part) for part in parts]
