"""Writers of runs: they print, with the clock in seconds, ``append n before`` before they append update n, and
``commit n before after`` once update n is committed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from grpo_core.record import Step
from grpo_core.runs.run_file import RunWriter
from tests.core.runs.forks import say, serve
from tests.core.steps import random_origin, random_step

SHAPES: tuple[dict[str, Any], ...] = ({}, {"group_size": 64, "tokens": 4})


LAST = 20_000
"""Number of the last update that a writer makes if it is not killed."""


def step_of(number: int, shape: int) -> Step:
    """Return the update that the writer gives this number."""
    return replace(_ready(number % 16, shape), step=number)


@cache
def _ready(number: int, shape: int) -> Step:
    return random_step(number, **SHAPES[shape])


def write(path: Path, shape: int) -> None:
    """Create a run and append to it until killed."""
    settings = step_of(0, shape).settings
    before = time.monotonic()
    writer = RunWriter.create(path, settings, origin=random_origin())
    say("commit", 0, before, time.monotonic())
    number, committed = 0, 0
    while number < LAST:
        number += 1
        step = step_of(number, shape)
        before = time.monotonic()
        say("append", number, before)
        writer.append(step)
        if writer.committed > committed:
            committed = writer.committed
            say("commit", committed, before, time.monotonic())


if __name__ == "__main__":
    serve(write)
