"""Cache of the numbers of recorded runs in the user's cache folder, so that a reopened run is displayed at once.

There is one file per source, named by a digest of its path: an ``.npz`` archive of plain arrays (nothing is unpickled)
with the numbers of each update and the stamp of its files. Entries are used up to the first update whose stamp differs,
so a run that was replaced or restarted is computed again. The file is replaced atomically. A file that is damaged or
cannot be written is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from grpo_core.foreign.recording import Source
from grpo_core.trainers.importers.line_index import cache_arrays, cached_arrays, place_in

VERSION = 1
"""Format version, increased when a release computes the numbers differently."""
SUFFIX = ".series.npz"
LARGEST = 256 << 20
"""Maximum size of a file in bytes. Ten thousand updates of forty series take 3 MB."""


class SeriesCache:
    """Cached numbers of sources, by update."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def rows(self, source: Source) -> list[dict[str, float]]:
        """Return the cached numbers of ``source`` by name, one mapping per update, up to the first changed update."""
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError):
            arrays = cached_arrays(self._file(source), LARGEST)
            version, names = json.loads(arrays["names"].tobytes())
            values, known = arrays["values"], arrays["stamps"]
            if version == VERSION and values.shape == (len(names), len(known)) and known.ndim == 2:
                now = source.stamps(1, min(len(known), len(source)))
                count = next((n for n, stamp in enumerate(now) if tuple(known[n]) != tuple(stamp)), len(now))
                return [dict(zip(map(str, names), map(float, column), strict=True)) for column in values.T[:count]]
        return []

    def extend(self, source: Source, start: int, rows: Sequence[Mapping[str, float]]) -> None:
        """Store the numbers of the updates from index ``start`` on, if those of all previous updates are stored.

        A failure to write is ignored: the numbers are then computed again.
        """
        before = self.rows(source)[:start]
        if len(before) < start or not rows:
            return
        whole = [*before, *rows]
        names = sorted({name for row in whole for name in row})
        values = np.array([[row.get(name, np.nan) for row in whole] for name in names])
        known = np.array(source.stamps(1, len(whole)), np.int64)
        titles = np.frombuffer(json.dumps([VERSION, names]).encode(), np.uint8)
        cache_arrays(self._file(source), names=titles, values=values, stamps=known)

    def _file(self, source: Source) -> Path:
        return place_in(self.folder, source.path, SUFFIX, source.columns)
