"""A throttle for taking in what a run has computed."""

from __future__ import annotations

from app.clock import now

INTERVAL = 0.1
"""Seconds between two updates of the window while a run is fast, since nobody reads more than ten numbers a second."""
SLACK = 0.01
"""Seconds by which an interval may be shorter, so that a run of ten updates a second shows all of them."""


class Throttle:
    """Admits the first call at once, and then one call per interval."""

    def __init__(self) -> None:
        self._last = -INTERVAL

    @property
    def ready(self) -> bool:
        """Whether an interval has passed since the last :meth:`start`."""
        return now() - self._last >= INTERVAL - SLACK

    def start(self) -> None:
        """Begin an interval now."""
        self._last = now()
