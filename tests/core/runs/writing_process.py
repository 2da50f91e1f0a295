"""A process that writes runs until it is killed: it forks one writer at a time, for each path on standard input.

Forking from one warm process makes a kill cheap. On standard output, the writer prints, with the clock in seconds,
``append n before`` before it appends update n, and ``commit n before after`` once update n is committed.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from grpo_core.record import Step
from grpo_core.runs.run_file import RunWriter
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


def say(*words: object) -> None:
    """Print one line in a single write, so that a kill never leaves half of it."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main() -> None:
    """Serve paths until standard input ends."""
    for line in sys.stdin:
        shape, path = line.rstrip("\n").split(" ", 1)
        child = os.fork()
        if child == 0:
            write(Path(path), int(shape))
            os._exit(0)
        say("pid", child)
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    main()
