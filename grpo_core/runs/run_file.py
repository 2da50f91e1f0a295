"""A run on disk: one SQLite file that is written while the run trains, read while it is written, copied and branched.

What the file looks like inside is in ``database.py`` (tables), ``layout.py`` (a step as bytes), ``series.py`` (scalars)
and ``meta.py``; this is the door.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from grpo_core.errors import RunFileError
from grpo_core.record import Step
from grpo_core.runs.database import opened
from grpo_core.runs.files import lock, release, replacing
from grpo_core.runs.meta import RunMeta
from grpo_core.runs.reader import RunReader
from grpo_core.runs.writer import RunWriter
from grpo_core.text import tr

__all__ = ["RunMeta", "RunReader", "RunWriter", "copy_run", "rebuild_series", "resume_point"]


def resume_point(reader: RunReader) -> Step | None:
    """The update from which the run goes on: the last, or for a branch without updates of its own the one it came from.

    None for a run at update 0.

    Raises:
        RunFileError: that update is damaged.
    """
    return reader.step(reader.last) if reader.last else None


def copy_run(source: str | Path, target: str | Path) -> None:
    """A copy of the run file ``source`` as one whole file at ``target``, also while ``source`` is being written.

    What stood at ``target`` is replaced only once the copy is complete.

    Raises:
        RunFileError: ``source`` cannot be read, ``target`` is ``source`` or is being written, or the disk is full.
    """
    source, target = Path(source), Path(target)
    if target.exists() and target.samefile(source):
        raise RunFileError(tr("{name} cannot be saved over itself; choose another name.").format(name=target.name))
    with closing(opened(source)[0]) as reading:
        held = lock(target)
        try:
            with replacing(target) as temporary, closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
                reading.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
                copy.execute("UPDATE meta SET value = 1 WHERE key = 'ended'")
        finally:
            release(held)


def rebuild_series(path: str | Path) -> None:
    """Computes the scalar series of the run file at ``path`` anew from its updates.

    Raises:
        RunFileError: an update is damaged, or the file cannot be written.
    """
    with RunWriter.open(path) as writer:
        writer.rebuild_series()
