"""Detection of whether a started program has painted its window, and how long that took."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 120.0
"""Time limit in seconds, long enough for a slow computer."""


def painted(home: Path, alive: Callable[[], bool]) -> float:
    """Wait until a log below ``home`` says that the window is painted. Return the time in seconds that the log gives
    for it.

    Args:
        home: the folder in ``GRPO_LAB_HOME``.
        alive: returns whether the program is still running.

    Raises:
        SystemExit: the program has ended, or it takes too long.
    """
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and alive():
        for log in home.rglob("*.log"):
            found = re.search(r"the window is painted, ([0-9.]+) s", log.read_text("utf-8", errors="replace"))
            if found:
                return float(found[1])
        time.sleep(0.1)
    raise SystemExit("The window was never painted.")
