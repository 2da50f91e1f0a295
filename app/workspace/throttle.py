"""A throttle for loading what a run has computed."""

from __future__ import annotations

from app.clock import now

INTERVAL = 0.1
"""Minimum seconds between two updates of the window during a fast run. Nobody can read ten numbers per second."""
SLACK = 0.01
"""Tolerance of the interval in seconds, so that all updates of a run at ten updates per second are shown."""


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
        """Start a new interval."""
        self._last = now()
