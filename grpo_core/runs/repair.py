"""Recovery of a damaged run file into a new one.

A damaged update of a bandit is recomputed from the previous one. The result is only accepted if it leads, bit for bit,
to an update with a matching checksum, which proves that it equals the lost one.
"""

from __future__ import annotations

import sqlite3
import zlib
from bisect import bisect_right
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from grpo_core.config import Settings
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.record import Step
from grpo_core.runs.database import opened
from grpo_core.runs.files import lock, release, replacing
from grpo_core.runs.layout import decoded, encoded
from grpo_core.runs.meta import all_rows, stored_settings, written_by
from grpo_core.runs.salvage import Row, salvage
from grpo_core.text import tr

MOST_AGAIN = 1000
"""Maximum number of consecutive updates that are recomputed."""


def rebuilt_run(source: Path, target: Path, poll: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """Recover the run file ``source`` to ``target``: its updates, with its series recomputed.

    Args:
        source: a run file that is not being written.
        target: path of the new file, which atomically replaces an existing one.
        poll: called for each recomputed update; may raise to stop.

    Returns:
        (last update in ``target``, number of recomputed updates).

    Raises:
        RunFileError: nothing can be recovered, or ``target`` cannot be written.
    """
    if target.exists() and target.samefile(source):
        raise RunFileError(tr("{name} cannot be rebuilt in place; choose another name.").format(name=target.name))
    with closing(opened(source)[0]) as damaged:
        file_lock = lock(target)
        try:
            with replacing(target) as temporary:
                replay = Replay(damaged, poll)
                return salvage(damaged, source.name, temporary, replay), replay.count
        finally:
            release(file_lock)


class Replay:
    """Recomputes damaged updates.

    Args:
        damaged: connection to the file.
        poll: called for each update.

    Attributes:
        count: number of updates that were recomputed and verified.
    """

    def __init__(self, damaged: sqlite3.Connection, poll: Callable[[], None]) -> None:
        self.count = 0
        self._damaged, self._poll = damaged, poll
        version = written_by(all_rows(damaged))
        self._settings: list[tuple[int, Settings]] = []
        for first, text in damaged.execute("SELECT id, json FROM settings ORDER BY id"):
            try:
                self._settings.append((first, stored_settings(text, version)))
            except (GrpoError, TypeError):
                continue

    def __call__(self, number: int, before: Row | None, layouts: dict[int, str]) -> list[Row]:
        """Recompute the rows from update ``number`` up to the next update with a checksum.

        The latter is included unless its record is intact. The result is empty if recomputing is not possible or the
        result cannot be verified.

        Args:
            number: number of a damaged update.
            before: the row of the previous update; None for the first.
            layouts: layouts of the new file, by number. New ones are added.
        """
        following = self._next_sum(number)
        if (
            following is None
            or not self._settings
            or self._settings[0][1].is_language
            or (before is None and number > 1)
        ):
            return []
        last, crc, whole = following
        try:
            steps = self._computed(number, last, before, layouts)
        except GrpoError:
            return []
        if zlib.crc32(encoded(steps[-1])[1]) != crc:
            return []
        wanted = steps[:-1] if whole else steps
        self.count += len(wanted)
        return [self._row(step, layouts) for step in wanted]

    def _next_sum(self, number: int) -> tuple[int, int, bool] | None:
        """Find the first update from ``number`` on that has a checksum.

        Returns (update, checksum, whether its record matches the checksum).
        """
        query = "SELECT step, crc, record FROM step WHERE step BETWEEN ? AND ? ORDER BY step"
        left = None
        try:
            for step, crc, record in self._damaged.execute(query, (number, number + MOST_AGAIN)):
                if isinstance(record, bytes) and zlib.crc32(record) == crc:
                    return step, crc, True
                if isinstance(crc, int):
                    left = step, crc, False
        except sqlite3.Error:
            pass
        return left

    def _at(self, number: int) -> tuple[int, Settings]:
        return self._settings[max(bisect_right(self._settings, number, key=lambda row: row[0]) - 1, 0)]

    def _computed(self, number: int, last: int, before: Row | None, layouts: dict[int, str]) -> list[Step]:
        resume = None
        if before is not None:
            resume = decoded(layouts[before[1]], before[4], before[0], self._at(before[0])[1])
        from grpo_core.learners import learner  # the learners are not needed to write a run

        training = learner(self._at(number)[1], resume=resume)
        steps = []
        for step in range(number, last + 1):
            self._poll()
            training.settings = self._at(step)[1]
            steps.append(next(training))
        return steps

    def _row(self, step: Step, layouts: dict[int, str]) -> Row:
        fields, record = encoded(step)
        known = {text: number for number, text in layouts.items()}
        if fields not in known:
            known[fields] = max(layouts, default=0) + 1
            layouts[known[fields]] = fields
        return step.step, known[fields], self._at(step.step)[0], zlib.crc32(record), record
