"""A throttle for loading what a run has computed."""

from __future__ import annotations

from app.clock import now

INTERVAL = 0.1
"""Seconds between two updates of the window while a run is fast. Nobody reads more than ten numbers per second."""
SLACK = 0.01
"""Seconds by which an interval can be shorter, so that a run at ten updates per second shows all of them."""


class Throttle:
    """A throttle that admits the first call immediately, and then one call per interval.

    Args:
        clock: a monotonic clock in seconds; tests can pass their own.
    """

    def __init__(self) -> None:
        self._last = -INTERVAL

    @property
    def ready(self) -> bool:
        """Whether an interval has passed since the last :meth:`start`."""
        return now() - self._last >= INTERVAL - SLACK

    def start(self) -> None:
        """Begin an interval now."""
        self._last = now()
