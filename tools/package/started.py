"""Whether a program that was started has painted its window, and how long that took."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 120.0
"""Patience with a slow computer."""


def painted(home: Path, alive: Callable[[], bool]) -> float:
    """Wait until a log below ``home`` says that the window is painted. The seconds since the start that it names.

    Args:
        home: the folder that ``GRPO_LAB_HOME`` names.
        alive: whether the program still runs.

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
