"""Garbage collection in the window's thread only, when that thread is about to wait for events.

By default, Python collects garbage in whichever thread happens to create an object. If the garbage contains a
``QObject``, that thread destroys it, perhaps while the window's thread sends it an event, which causes a segmentation
fault.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtCore import SignalInstance


def collect_at(about_to_wait: SignalInstance) -> None:
    """Restrict garbage collection to the moments at which a signal is emitted, in the emitting thread.

    Args:
        about_to_wait: ``aboutToBlock`` of the event dispatcher of the window's thread.
    """
    gc.disable()
    about_to_wait.connect(collect_if_due)


def collect_if_due() -> None:
    """Collect, in this thread, the oldest generation that Python would have collected by now."""
    counts, thresholds = gc.get_count(), gc.get_threshold()
    for generation in (2, 1, 0):
        if counts[generation] > thresholds[generation]:
            gc.collect(generation)
            return
