"""A process ends when the one that started it has gone, however that ended."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import wait

GRACE = 3.0
"""Seconds that a process has to close its files after the one that started it has gone."""


def end_with_parent() -> None:
    """Wait for the parent's end, in a thread; end this process where it has not noticed by itself after a while."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    wait([parent.sentinel])
    time.sleep(GRACE)
    os._exit(1)
