"""Detection of changes in a recorded run that may still be growing, and reopening it with new data."""

from __future__ import annotations

import copy
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from grpo_core.foreign.formats import place_of
from grpo_core.foreign.recording import Source

DEPTH = 4
"""Maximum depth of nested folders that are checked."""
LOOKED_AT, EVENTS = (".jsonl", ".json", ".csv", ".log", ".txt", ".out", ".db", ".db-wal"), "tfevents"
"""Suffixes, and part of a name, of files that grow after they are created. Others are noticed when they appear."""


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
