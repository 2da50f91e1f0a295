"""Runs recorded by other programs: their formats, which parts contribute, and how they are opened and followed."""

from __future__ import annotations

import copy
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from grpo_core import parts
from grpo_core.child.answering import Poll
from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.metrics import Metric
from grpo_core.progress import unpolled
from grpo_core.runs.reader import RunReader
from grpo_core.text import tr

DEPTH = 4
"""Maximum depth of nested folders that are checked."""
LOOKED_AT, EVENTS = (".jsonl", ".json", ".csv", ".log", ".txt", ".out", ".db", ".db-wal"), "tfevents"
"""Suffixes, and part of a name, of files that grow after they are created. Others are noticed when they appear."""


@dataclass(frozen=True, kw_only=True)
class Formats:
    """The formats that a part can read.

    Attributes:
        knows: returns whether a file or folder has one of these formats, or a name typical of another trainer.
        open: opens a run; the other arguments are a folder in the user's cache for indexes of large files, or None, and
            what columns mean. Raises RunFileError with a message that says which formats can be read.
        place_of: returns the file or folder of a run, which for a run in a database is the database.
    """

    knows: Callable[[Path], bool]
    open: Callable[[Path, Path | None, str], Source]
    place_of: Callable[[Path], Path]


def knows(path: Path) -> bool:
    """Return whether ``path`` can be a run recorded by another program. A folder always can."""
    return not path.is_file() or any(formats.knows(path) for formats in parts.rows("formats"))


def place_of(path: Path) -> Path:
    """Return the file or folder to watch for changes of the run at ``path``.

    For a run in a database, this is the database.
    """
    return next((place for formats in parts.rows("formats") if (place := formats.place_of(path)) != path), path)


def open_source(path: Path, *, index: Path | None = None, columns: str = "") -> Source:
    """Open the recorded run in a file or folder.

    Args:
        index: folder in the user's cache for line indexes of large files; with it, such a file can be
            :attr:`~grpo_core.foreign.recording.Source.partial` at first.
        columns: what columns of the user's own mean, ``my_col=reward,...``; empty if it is known.

    Raises:
        RunFileError: it does not exist, has an unknown format, or cannot be read.
    """
    known: list[Formats] = parts.rows("formats")
    if not known:
        raise RunFileError(
            tr("{path} cannot be read: the formats of other trainers are switched off.").format(path=path)
        )
    return next((one for one in known if one.knows(path)), known[0]).open(path, index, columns)


def refreshed(source: Source, stamp: int | None) -> tuple[int, Source | None, bool]:
    """Check a source for new data.

    Args:
        source: the known state, which is not modified.
        stamp: stamp from the previous check; None before the first one.

    Returns:
        The new stamp; the source with the new data, or None if nothing has changed; and whether the new source begins
        with the updates of ``source``.
    """
    now = _stamp(source.path)
    if now == stamp:
        return now, None, True
    fresh = copy.deepcopy(source)
    fresh.refresh()
    return now, fresh, _goes_on(source, fresh)


def _stamp(path: Path) -> int:
    """Return a number that changes when a file at or below ``path`` is written."""
    digest = 0
    for name, changed, size in _facts(place_of(path)):
        digest = zlib.crc32(repr((name, changed, size)).encode("utf-8", "surrogateescape"), digest)
    return digest


def _facts(path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield names, times and sizes of the files that can grow."""
    if path.is_file():
        for file in (path, path.with_name(path.name + "-wal")):
            if file.exists():
                yield file.name, file.stat().st_mtime_ns, file.stat().st_size
        return
    for folder, inside, files in os.walk(path):
        here = Path(folder)
        if len(here.relative_to(path).parts) >= DEPTH:
            inside.clear()
        yield folder, here.stat().st_mtime_ns, 0
        for name in files:
            if name.endswith(LOOKED_AT) or EVENTS in name:
                facts = (here / name).stat()
                yield name, facts.st_mtime_ns, facts.st_size


def _goes_on(before: Source, fresh: Source) -> bool:
    if list(fresh.labels[: len(before)]) != list(before.labels):
        return False
    files, files_now = getattr(before, "steps", None), getattr(fresh, "steps", None)
    return files is None or files_now is None or files_now[: len(files)] == files


@dataclass(frozen=True, kw_only=True)
class ImportedRuns:
    """Run files with imported runs, which a part contributes.

    Attributes:
        open: opens the file at a path; the second argument can cancel reading.
        metric: returns how a number of such a run is shown, by its name.
    """

    open: Callable[[Path, Callable[[], None]], AbstractContextManager[RunReader]]
    metric: Callable[[str], Metric]


def imported_runs() -> ImportedRuns:
    """Return the functions for imported runs.

    Raises:
        RunFileError: no part that is switched on has them.
    """
    known: list[ImportedRuns] = parts.rows("imported")
    if not known:
        raise RunFileError(tr("The file holds an imported run; runs of other trainers are switched off."))
    return known[0]


@contextmanager
def opened_run(path: Path, poll: Poll = unpolled) -> Iterator[RunReader]:
    """Open the run file at ``path``. The series of an imported run are computed, as in the window.

    ``poll`` can cancel reading an imported run.

    Raises:
        RunFileError: it cannot be read.
    """
    with RunReader.open(path) as reader:
        if not reader.meta.settings.is_recorded:
            yield reader
            return
    with imported_runs().open(path, poll) as imported:
        yield imported
