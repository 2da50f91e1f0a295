"""Thinned run files, in which versions up to 0.3.1 dropped some of the older updates at a size limit.

In a thinned stretch every second update is kept, or every fourth, …, besides the first ones with changed settings and
those with stored answers. Series are complete. The file lists its stretches.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from grpo_core.errors import RunFileError, shortened
from grpo_core.parsing import is_whole
from grpo_core.runs.limits import MOST_STRETCHES, MOST_UPDATES
from grpo_core.text import tr

KEY = "thinned"
"""Key of the row of the table ``meta`` that lists the stretches."""


@dataclass(frozen=True)
class Stretch:
    """A range of updates, ``first`` to ``last``, in which only those divisible by ``every`` are kept.

    The few that are never dropped are kept too.
    """

    first: int
    last: int
    every: int


def stretches_from(rows: Mapping[str, Any]) -> tuple[Stretch, ...]:
    """Parse the list of thinned stretches in the table ``meta``.

    Raises:
        RunFileError: the row is damaged.
    """
    try:
        stored = json.loads(rows.get(KEY, "[]"))
        if len(stored) > MOST_STRETCHES:
            raise ValueError("there are too many stretches")
        stretches = tuple(Stretch(*map(_whole, row)) for row in stored)
        ends = [0, *(place for s in stretches for place in (s.first, s.last))]
        if any(a >= b for a, b in pairwise(ends)):
            raise ValueError("the stretches are not in order")
    except (TypeError, ValueError, RecursionError) as error:
        raise RunFileError(
            tr("The list of what was thinned out cannot be read ({error}); the file is damaged.").format(
                error=shortened(error)
            )
        ) from None
    return stretches


def note(connection: sqlite3.Connection, stretches: Iterable[Stretch], last: int) -> None:
    """Store the thinned stretches, limited to updates up to ``last``."""
    text = json.dumps([[s.first, min(s.last, last), s.every] for s in stretches if s.first < last])
    connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (KEY, text))


def may_be_dropped(stretches: Sequence[Stretch], number: int) -> bool:
    """Return whether thinning may have dropped update ``number``.

    True also for the few updates in a thinned stretch that are never dropped.
    """
    stretch = stretch_at(stretches, number)
    return stretch is not None and number % stretch.every != 0


def stretch_at(stretches: Sequence[Stretch], number: int) -> Stretch | None:
    """Return the thinned stretch that contains update ``number``, or None if there is none."""
    place = bisect_right(stretches, number, key=lambda s: s.first) - 1
    return stretches[place] if place >= 0 and number <= stretches[place].last else None


def stretches_text(stretches: Iterable[Stretch]) -> str:
    """Describe the dropped stretches, with one sentence for each."""
    return " ".join(
        tr("Of updates {first:,} to {last:,}, one in {every:,} is kept.").format(
            first=s.first, last=s.last, every=s.every
        )
        if s.every > 2
        else tr("Of updates {first:,} to {last:,}, one in two is kept.").format(first=s.first, last=s.last)
        for s in stretches
    )


def _whole(value: object) -> int:
    if not is_whole(value, 1, MOST_UPDATES):
        raise ValueError(f"{str(value)[:40]} is not an update")
    return value
