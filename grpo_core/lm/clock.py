"""How long the stages of an update take."""

from __future__ import annotations

import time

import torch


class Clock:
    """A stopwatch with named laps.

    Attributes:
        seconds: lap -> seconds.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """What has been done since the last lap was ``name``."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
