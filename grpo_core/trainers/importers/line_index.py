"""An index of a large file's lines and the steps to which they belong, created without parsing the lines as JSON.

The index is stored in the user's cache, so that a file is scanned only once. A file that grows is scanned from its
previous end. The end of a large new file is scanned first.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from grpo_core.regular_file import opened_regular, read_limited, write_whole
from grpo_core.trainers.importers.records import LONGEST_LINE, Place, placed_lines

SUFFIX = ".lines.npz"
LARGEST = 1 << 30
"""Maximum size of a stored index in bytes: 24 per line."""
MOST_FILES = 200
"""Maximum number of files of one kind in the cache. The least recently used are deleted."""
VERSION = 1
WORTH_KEEPING = 64 << 20
"""Minimum number of newly scanned bytes after which the index is stored again."""

KeyOf = Callable[[bytes], tuple[int, int]]
"""Function from a line to its (step, kind). Raises ValueError if the line is not JSON."""


def _none() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class LineIndex:
    """The lines of a file up to a position in it.

    Attributes:
        file: the file's inode number.
        first: byte at which the first known line begins; 0 if the index starts at the beginning of the file.
        byte, lines: position after the last complete line, in bytes, and in lines from ``first`` on.
        starts: byte at which each line begins, (L,).
        steps, kinds: results of ``key_of`` for each line, (L,) each.
    """

    file: int
    first: int = 0
    byte: int = 0
    lines: int = 0
    starts: np.ndarray = field(default_factory=_none)
    steps: np.ndarray = field(default_factory=_none)
    kinds: np.ndarray = field(default_factory=_none)

    @property
    def finished(self) -> np.ndarray:
        """Whether each line is complete, boolean (L,). An incomplete line is read again."""
        return np.asarray(self.starts < self.byte)


def begun(folder: Path | None, path: Path, key_of: KeyOf, most: int) -> LineIndex | None:
    """Return the stored index of ``path`` in ``folder``, or that of the end of a new file of more than ``most`` bytes.

    None if there is neither or no folder, so that the file is read as a whole.
    """
    if folder is None:
        return None
    kept = kept_index(folder, path)
    return read_end(path, key_of, most) if kept is None and path.stat().st_size > most else kept


def read_on(
    path: Path, key_of: KeyOf, notes: list[str], before: LineIndex | None = None, folder: Path | None = None
) -> LineIndex:
    """Index all of ``path``, continuing from ``before``, or from the start if the file has been replaced.

    Lines that are not JSON are skipped and noted. If much was scanned, the index is stored in ``folder``, if given.
    """
    facts = path.stat()
    if before is None or before.first or before.file != facts.st_ino or facts.st_size < before.byte:
        before = LineIndex(file=facts.st_ino)
    index = _extended(path, key_of, notes, before)
    if folder is not None and index.byte - before.byte >= WORTH_KEEPING:
        keep_index(folder, path, index)
    return index


def read_end(path: Path, key_of: KeyOf, size: int) -> LineIndex:
    """Index the last ``size`` bytes, except for the line that begins before."""
    with opened_regular(path) as file:
        facts = os.fstat(file.fileno())
        first = max(facts.st_size - size, 0)
        if first:
            file.seek(first)
            first += len(file.readline(LONGEST_LINE))
    return _extended(path, key_of, [], LineIndex(file=facts.st_ino, first=first, byte=first))


def _extended(path: Path, key_of: KeyOf, notes: list[str], before: LineIndex) -> LineIndex:
    at = Place(byte=before.byte, lines=before.lines)
    entries = [(start, *key) for start, key in placed_lines(path, notes, note_torn=True, at=at, parse=key_of)]
    kept, more = before.finished, np.array(entries, np.int64).reshape(-1, 3)
    return LineIndex(
        file=before.file,
        first=before.first,
        byte=at.byte,
        lines=at.lines,
        starts=np.concatenate([before.starts[kept], more[:, 0]]),
        steps=np.concatenate([before.steps[kept], more[:, 1]]),
        kinds=np.concatenate([before.kinds[kept], more[:, 2]]),
    )


def kept_index(folder: Path, path: Path) -> LineIndex | None:
    """Return the stored index of ``path`` in ``folder``, or None if it is missing, damaged or of another file."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        arrays = cached_arrays(place_in(folder, path, SUFFIX), LARGEST)
        version, file, byte, lines, checked = (int(number) for number in arrays["facts"])
        starts, steps, kinds = (arrays[name].astype(np.int64) for name in ("starts", "steps", "kinds"))
        sound = version == VERSION and starts.ndim == 1 and starts.shape == steps.shape == kinds.shape
        if not sound or checked != _sum_before(path, byte) or (starts.size and not 0 <= starts[-1] < byte):
            return None
        return LineIndex(file=file, byte=byte, lines=lines, starts=starts, steps=steps, kinds=kinds)
    return None


def keep_index(folder: Path, path: Path, index: LineIndex) -> None:
    """Store the index of ``path`` in ``folder``. If that fails, the file is scanned again next time."""
    done = index.finished
    with suppress(OSError, ValueError):
        facts = np.array([VERSION, index.file, index.byte, index.lines, _sum_before(path, index.byte)], np.int64)
        arrays = {"starts": index.starts[done], "steps": index.steps[done], "kinds": index.kinds[done]}
        cache_arrays(place_in(folder, path, SUFFIX), facts=facts, **arrays)


def _sum_before(path: Path, byte: int) -> int:
    """Return a checksum of the last 4096 bytes before ``byte``, which detects a file that was rewritten."""
    with opened_regular(path) as file:
        file.seek(max(byte - 4096, 0))
        return zlib.crc32(file.read(min(byte, 4096)))


def place_in(folder: Path, path: Path, suffix: str, columns: str = "") -> Path:
    """Return the file in a ``folder`` of a cache that belongs to the file or folder ``path``, read with ``columns``."""
    key = os.fsencode(path.absolute()) + columns.encode("utf-8", "surrogatepass")
    return folder / f"{hashlib.sha256(key).hexdigest()[:32]}{suffix}"


def cached_arrays(place: Path, largest: int) -> dict[str, np.ndarray]:
    """Return the arrays in a file of :func:`place_in`, none if it is missing, damaged or over ``largest`` bytes."""
    with suppress(OSError, ValueError, LookupError, EOFError, MemoryError, zipfile.BadZipFile):
        content = read_limited(place, largest)
        if content is not None:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = dict(archive)
            with suppress(OSError):
                os.utime(place)
            return arrays
    return {}


def cache_arrays(place: Path, **arrays: np.ndarray) -> None:
    """Write a file of :func:`place_in` if possible, and delete the least recently used of too many with its suffix."""
    archive = io.BytesIO()
    np.savez(archive, allow_pickle=False, **arrays)
    with suppress(OSError, ValueError):
        place.parent.mkdir(parents=True, exist_ok=True)
        files = sorted(place.parent.glob(f"*{''.join(place.suffixes)}"), key=lambda file: file.stat().st_mtime)
        for file in files[: max(len(files) - MOST_FILES, 0)]:
            file.unlink(missing_ok=True)
        write_whole(place, archive.getvalue())
