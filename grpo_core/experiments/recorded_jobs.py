"""Jobs on recorded runs that would keep the window waiting: their series, the audit, the diagnosis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from grpo_core import recorded_series
from grpo_core.errors import RunFileError
from grpo_core.host.wire import Message
from grpo_core.runs.importers import open_source
from grpo_core.runs.importers.source import Source

Poll = Callable[[], None]
Result = tuple[Message, list[bytes]]
BATCH_SECONDS = 0.2
"""Time between two batches of numbers."""


def series(arguments: Message, poll: Poll) -> Iterator[Result]:
    """The numbers of the updates ``start`` + 1 to ``end`` of the run at ``path``, in batches, in order."""
    source = open_source(Path(arguments["path"]))
    for rows in batches(source, arguments["start"], min(arguments["end"], len(source)), poll):
        yield {"rows": rows}, []


def batches(source: Source, start: int, end: int, poll: Poll) -> Iterator[list[dict[str, float]]]:
    """The numbers of the updates ``start`` + 1 to ``end``, in batches; nothing for an update that cannot be read.

    A last update that cannot be read may be half written: it is left for later.
    """
    rows: list[dict[str, float]] = []
    begun = time.monotonic()
    for position in range(start + 1, end + 1):
        poll()
        try:
            rows.append(recorded_series.numbers(source, position))
        except RunFileError:
            if position == len(source):
                break
            rows.append({})
        if time.monotonic() - begun > BATCH_SECONDS:
            yield rows
            rows, begun = [], time.monotonic()
    if rows:
        yield rows
