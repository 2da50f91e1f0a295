"""A process ends when the one that started it has gone, however that ended."""

from __future__ import annotations

import os
import time

GRACE = 3.0
"""Seconds that a process has to close its files after the one that started it has gone."""


def end_with_parent() -> None:
    """Wait for the parent's end, in a thread; end this process where it has not noticed by itself after a while."""
    import multiprocessing  # only in a process that another one has started, which has imported it
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    if parent is None:
        return
    wait([parent.sentinel])
    time.sleep(GRACE)
    os._exit(1)
