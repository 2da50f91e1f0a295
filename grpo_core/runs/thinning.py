"""Thinning, which keeps a run file below a size limit: every second one of the older updates is kept, then every
fourth, …

Series are kept completely; only records are dropped. Blocks of 1,024 updates are thinned one at a time: first the least
thinned, and among these the oldest. The kept updates are therefore evenly spread over the run, up to a factor of two.
The newest updates, the first ones with changed settings, and those with stored answers are never dropped. The dropped
updates are recorded in the file, in the same transaction.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from grpo_core.errors import RunFileError, shortened
from grpo_core.runs.limits import MOST_STRETCHES, MOST_UPDATES
from grpo_core.text import tr

BLOCK = 1024
"""Number of updates that are thinned together, and maximum thinning: one update per block."""
NEWEST = 2 * BLOCK
"""Minimum number of updates at the end of a run that are never dropped."""
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


class Thinning:
    """The state of thinning of one file, on its writing connection.

    Attributes:
        stretches: the thinned stretches, in order.
    """

    def __init__(self, connection: sqlite3.Connection, first: int, last: int) -> None:
        """Read the state of a file with updates ``first`` to ``last``.

        Raises:
            RunFileError: the stored state is damaged.
        """
        self._sql = connection
        self._first = first
        self.stretches = stretches_from(dict(connection.execute("SELECT key, value FROM meta WHERE key = ?", (KEY,))))
        if self.stretches and self.stretches[-1].last > last:
            raise RunFileError(tr("The run claims that more was thinned out than it contained; the file is damaged."))
        blocks = -(-(self.stretches[-1].last - first + 1) // BLOCK) if self.stretches else 0
        self._every = [self._thinnest(first + block * BLOCK) for block in range(blocks)]

    def _thinnest(self, begin: int) -> int:
        """Return the current thinning factor of the block that begins with update ``begin``.

        If another version thinned parts of the block differently, the largest factor is returned.
        """
        return max((s.every for s in self.stretches if s.first < begin + BLOCK and begin <= s.last), default=1)

    def make_space(self, last: int, limit: int) -> bool:
        """Thin until the content is below 97 % of ``limit`` bytes. Return whether that succeeded.

        ``last``: the newest update.

        Raises:
            sqlite3.Error: writing failed; the current block is unchanged.
        """
        while used(self._sql) >= 0.97 * limit:
            if not self._thin(last):
                return used(self._sql) < limit
        return True

    def _thin(self, last: int) -> bool:
        """Thin the next block further. Return whether any block could be thinned."""
        whole = max((last - NEWEST - self._first + 1) // BLOCK, 0)
        every = self._every + [1] * (whole - len(self._every))
        if not every or min(every) >= BLOCK:
            return False
        place = every.index(min(every))
        every[place] *= 2
        begin = self._first + place * BLOCK
        stretches = _stretches(self._first, every)
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            self._drop(begin, begin + BLOCK - 1, every[place])
            note(self._sql, stretches)
            self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise
        self._every, self.stretches = every, stretches
        return True

    def _drop(self, begin: int, end: int, every: int) -> None:
        """Remove the block and reinsert the kept updates, because removing individual rows would not free any pages."""
        kept = self._sql.execute(
            "SELECT step, layout, settings, crc, record FROM step WHERE step BETWEEN ?1 AND ?2 AND (step % ?3 = 0 "
            "OR step IN (SELECT id FROM settings) OR step IN (SELECT step FROM answer))",
            (begin, end, every),
        ).fetchall()
        self._sql.execute("DELETE FROM step WHERE step BETWEEN ? AND ?", (begin, end))
        self._sql.executemany("INSERT INTO step(step, layout, settings, crc, record) VALUES (?, ?, ?, ?, ?)", kept)


def used(connection: sqlite3.Connection) -> int:
    """Return the number of bytes of the file that are in use.

    Dropped content becomes free space inside the file, which does not shrink.
    """
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


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


def note(connection: sqlite3.Connection, stretches: Iterable[Stretch]) -> None:
    """Store the thinned stretches in the table ``meta``."""
    text = json.dumps([[s.first, s.last, s.every] for s in stretches])
    connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (KEY, text))


def up_to(stretches: Iterable[Stretch], last: int) -> tuple[Stretch, ...]:
    """Return the thinned stretches, limited to updates up to ``last``."""
    return tuple(replace(s, last=min(s.last, last)) for s in stretches if s.first < last)


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


def _stretches(first: int, every: Sequence[int]) -> tuple[Stretch, ...]:
    """Merge adjacent blocks with equal thinning into stretches. Unthinned blocks are omitted."""
    stretches: list[Stretch] = []
    for place, each in enumerate(every):
        begin = first + place * BLOCK
        if stretches and stretches[-1].every == each:
            stretches[-1] = Stretch(stretches[-1].first, begin + BLOCK - 1, each)
        else:
            stretches.append(Stretch(begin, begin + BLOCK - 1, each))
    return tuple(s for s in stretches if s.every > 1)


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_UPDATES:
        raise ValueError(f"{str(value)[:40]} is not an update")
    return value
