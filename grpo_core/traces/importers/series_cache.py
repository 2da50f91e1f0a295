"""Numbers of recorded runs that were computed before, kept in the user's cache: the next opening shows them at once.

One file a source, named by a digest of its path: an ``.npz`` archive of plain arrays (nothing is unpickled) with the
numbers of each update and what the update's files looked like. An update whose files look otherwise ends what is used,
so a run that was replaced or began anew is computed again. The file is replaced whole; one that is torn, foreign or
cannot be written is as none at all.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from grpo_core.regular_file import read_limited, write_whole
from grpo_core.traces.importers.source import Source, stamps

VERSION = 1
"""Raised where the numbers of a release are others than those of the one before."""
SUFFIX = ".series.npz"
LARGEST = 256 << 20
"""Bytes of a file at most; ten thousand updates of forty series have 3 MB."""
MOST_FILES = 200
"""Sources that are kept; those that were opened longest ago go first."""


class SeriesCache:
    """The numbers of sources by update.

    Attributes:
        folder: where the files lie; made when the first is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def rows(self, source: Source) -> list[dict[str, float]]:
        """The numbers of the first updates of ``source``, by name, as long as nothing has changed. Empty where none."""
        try:
            return self._rows(source)
        except (OSError, ValueError, LookupError, TypeError, EOFError, RecursionError, MemoryError, zipfile.BadZipFile):
            return []

    def extend(self, source: Source, start: int, rows: Sequence[Mapping[str, float]]) -> None:
        """Keep the numbers of the updates after ``start`` too. Nothing where those before are not kept.

        What cannot be written is left: it is computed again next time.
        """
        before = self.rows(source)[:start]
        if len(before) < start or not rows:
            return
        whole = [*before, *rows]
        names = sorted({name for row in whole for name in row})
        values = np.array([[row.get(name, np.nan) for row in whole] for name in names])
        known = np.array(stamps(source, 1, len(whole)), np.int64)
        archive = io.BytesIO()
        np.savez(
            archive, names=np.frombuffer(json.dumps([VERSION, names]).encode(), np.uint8), values=values, stamps=known
        )
        with suppress(OSError, ValueError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make_space()
            write_whole(self._file(source), archive.getvalue())

    def _rows(self, source: Source) -> list[dict[str, float]]:
        content = read_limited(self._file(source), LARGEST)
        if content is None:
            return []
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            version, names = json.loads(archive["names"].tobytes())
            values, known = archive["values"], archive["stamps"]
        if version != VERSION or values.shape != (len(names), len(known)) or known.ndim != 2:
            return []
        now = stamps(source, 1, min(len(known), len(source)))
        count = next((n for n, stamp in enumerate(now) if tuple(known[n]) != tuple(stamp)), len(now))
        with suppress(OSError):
            os.utime(self._file(source))
        return [dict(zip(map(str, names), map(float, column), strict=True)) for column in values.T[:count]]

    def _file(self, source: Source) -> Path:
        digest = hashlib.sha256(os.fsencode(source.path.absolute())).hexdigest()
        return self.folder / f"{digest[:32]}{SUFFIX}"

    def _make_space(self) -> None:
        """Delete the files that were used longest ago where there are too many."""
        files = sorted(self.folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime)
        for file in files[: max(len(files) - MOST_FILES, 0)]:
            file.unlink(missing_ok=True)
