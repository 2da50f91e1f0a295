"""Run files: one SQLite file per run that can be read while it is written, copied and branched.

The internal format is defined in ``database.py`` (tables), ``layout.py`` (a step as bytes), ``series.py`` (scalars) and
``meta.py``. This module is the public interface.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.record import Step
from grpo_core.regular_file import opened_regular
from grpo_core.runs.database import APPLICATION_ID, opened
from grpo_core.runs.files import locked, replacing
from grpo_core.runs.meta import RunMeta
from grpo_core.runs.reader import RunReader
from grpo_core.runs.writer import RunWriter
from grpo_core.text import tr

__all__ = [
    "RunMeta",
    "RunReader",
    "RunWriter",
    "copy_run",
    "holds_recorded_run",
    "is_run_file",
    "resume_point",
]

PIECE = 256
"""Number of pages of 4 kB copied between two checks for cancellation."""


def is_run_file(path: Path) -> bool:
    """Return whether the first bytes of ``path`` are those of a run file, whatever its name."""
    try:
        with opened_regular(path) as file:
            head = file.read(72)
    except (OSError, ValueError):
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION_ID.to_bytes(4, "big")


def holds_recorded_run(path: Path) -> bool:
    """Return whether ``path`` is a run file, whatever its name, that holds a run recorded by another program."""
    if not is_run_file(path):
        return False
    try:
        with RunReader.open(path) as reader:
            return reader.meta.settings.is_recorded
    except (GrpoError, OSError):
        return False


def resume_point(reader: RunReader) -> Step | None:
    """Return the update from which the run continues. None if the run has no update.

    It is the last one or, for a branch that has no updates yet, the one at its branch point.

    Raises:
        RunFileError: that update is damaged.
    """
    return reader.step(reader.last) if reader.last else None


def copy_run(
    source: str | Path,
    target: str | Path,
    poll: Callable[[float], object] = lambda fraction: None,
) -> None:
    """Copy the run file ``source`` to a single file ``target``, even while ``source`` is being written.

    An existing ``target`` is only replaced when the copy is complete.

    Args:
        poll: called between pieces of a megabyte with the finished fraction, from 0 to 1; may raise to stop, which
            leaves ``target`` unchanged.

    Raises:
        RunFileError: ``source`` cannot be read, ``target`` is ``source`` or is being written, or the disk is full.
    """
    source, target = Path(source), Path(target)
    if target.exists() and target.samefile(source):
        raise RunFileError(tr("{name} cannot be saved over itself; choose another name.").format(name=target.name))

    def between_pieces(status: int, remaining: int, total: int) -> None:
        poll(1 - remaining / max(total, 1))

    with (
        closing(opened(source)) as reading,
        locked(target),
        replacing(target) as temporary,
        closing(sqlite3.connect(temporary, isolation_level=None)) as copy,
    ):
        reading.execute("BEGIN")  # one state for all pieces: they would start over whenever a writer commits
        reading.execute("SELECT count(*) FROM meta").fetchone()
        reading.backup(copy, pages=PIECE, progress=between_pieces)
        copy.execute("PRAGMA journal_mode=DELETE")
        copy.execute("UPDATE meta SET value = 1 WHERE key = 'ended'")
