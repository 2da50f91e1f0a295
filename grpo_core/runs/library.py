"""The folder of saved runs: names for new runs, a list that tolerates broken files, and selection of surplus runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from grpo_core.errors import RunFileError
from grpo_core.record import Step
from grpo_core.runs.database import explained
from grpo_core.runs.files import files_of, in_use, locked, size_of
from grpo_core.runs.limits import MOST_ANCESTORS
from grpo_core.runs.meta import RunMeta
from grpo_core.runs.reader import RunReader
from grpo_core.runs.thinning import Stretch
from grpo_core.text import tr

SUFFIX = ".grpo"
KEEP_RUNS = 20
KEEP_BYTES = 5_000_000_000
_LONGEST_TITLE = 60


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run of the folder.

    Attributes:
        meta: metadata of the run; None if the file is broken.
        steps: number of its last update, including those before its branch point.
        error: message that says why the file cannot be read; None if it can.
    """

    path: Path
    in_use: bool = False
    meta: RunMeta | None = None
    steps: int = 0
    error: str | None = None


def new_path(folder: Path, title: str, now: float | None = None) -> Path:
    """Return a path for a new run, which starts with the local time, so that names sort by age.

    It continues with as much of the title as file systems allow. The folder is created if necessary. The file is not
    created, so runs created within the same second need different titles.

    Raises:
        RunFileError: the folder cannot be created.
    """
    with explained(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
    moment = time.strftime("%Y-%m-%d %H.%M.%S", time.localtime(now))
    words = "".join(c if c.isprintable() and c not in '\\/:*?"<>|' else " " for c in title)
    stem = f"{moment} {' '.join(words.split())[:_LONGEST_TITLE]}".rstrip(" .")
    return free_name(folder / f"{stem}{SUFFIX}")


def free_name(path: Path, *, folder: bool = False) -> Path:
    """Return ``path``, or a similar unused path with a number appended, before the suffix unless it is a ``folder``."""
    stem, suffix = (path.name, "") if folder else (path.stem, path.suffix)
    free, count = path, 1
    while free.exists():
        count += 1
        free = path.with_name(f"{stem} {count}{suffix}")
    return free


def entries(folder: Path, poll: Callable[[], object] = lambda: None) -> list[Entry]:
    """List the runs of ``folder``, the last written first, including broken files with their errors.

    Each file is opened and may be of unknown origin, so this must not run in the window's thread. ``poll`` is called
    before each and may raise to stop.
    """
    entries = []
    for path in _paths(folder):
        poll()
        entries.append(_entry(path))
    return entries


def surplus(folder: Path, *, keep: int = KEEP_RUNS, limit: int = KEEP_BYTES) -> list[Path]:
    """Select the run files to delete, oldest first, so that at most ``keep`` runs and ``limit`` bytes remain.

    A run that is being written is never selected. This function deletes nothing.
    """
    gone, kept, total = [], 0, 0
    for path in _paths(folder):
        kept, total = kept + 1, total + size_of(path)
        if (kept > keep or total > limit) and not in_use(path):
            gone.append(path)
    return gone[::-1]


def find(folder: Path, run_id: str, hint: str = "") -> Path | None:
    """Return the path of the run ``run_id``: at ``hint``, or anywhere in ``folder``.

    The hint comes from the file, which may be of unknown origin. It is only followed to a file on this computer or on
    the same share as ``folder``, never to another host.
    """
    for path in (*_hinted(hint, folder), *_paths(folder)):
        with suppress(RunFileError), RunReader.open(path) as reader:
            if reader.meta.id == run_id:
                return path
    return None


def _hinted(hint: str, folder: Path) -> Iterable[Path]:
    path = Path(hint)
    remote = path.drive.startswith(("\\\\", "//")) and path.drive.casefold() != folder.absolute().drive.casefold()
    return [] if remote or not path.is_absolute() else [path]


def remove(path: Path) -> None:
    """Delete a run and its companion files.

    Raises:
        RunFileError: it is being written, or it cannot be deleted.
    """
    with locked(path):
        try:
            for file in reversed(files_of(path)):  # the log first: without its file it could be mistaken for another's
                file.unlink()
        except OSError as error:
            raise RunFileError(
                tr("{name} cannot be deleted: {strerror}.").format(name=path.name, strerror=error.strerror)
            ) from None


class Lineage:
    """A run together with the runs from which it branched off, if they still exist. Used by one thread."""

    def __init__(self, reader: RunReader, folder: Path, below: frozenset[str] = frozenset()) -> None:
        """Find the ancestors of a run.

        ``below``: ids of the runs that descend from this one and therefore cannot be its ancestors.
        """
        self.reader = reader
        self._folder = folder
        self._ids = below | {reader.meta.id}
        self._parent: Lineage | None = None

    def step(self, number: int) -> Step:
        """Return update ``number`` from the file that holds it.

        Raises:
            RunFileError: it is before a branch point and the parent is missing, or its record is damaged.
        """
        return self.holder(number).step(number)

    def kept(self, number: int, *, forwards: bool = False) -> int:
        """Return the nearest recorded update at or before ``number``, or at or after it if ``forwards``.

        Raises:
            RunFileError: it is before a branch point and the parent is missing.
        """
        point = self.reader.first - 1
        if 1 <= number < point:
            return min(self._above(number).kept(number, forwards=forwards), point)
        nearest = point if number == point else self.reader.kept(number, forwards=forwards)
        return nearest if nearest is not None else number if forwards else point

    def thinned(self) -> tuple[Stretch, ...]:
        """Return the stretches of dropped updates, of this run and of its existing ancestors."""
        own, point = self.reader.thinned, self.reader.first - 1
        above: tuple[Stretch, ...] = ()
        if point > 1:
            with suppress(RunFileError):
                above = self._above(1).thinned()
        return (*(replace(s, last=min(s.last, point - 1)) for s in above if s.first < point), *own)

    def holder(self, number: int) -> RunReader:
        """Return the file with update ``number``. A branch also contains the update at its branch point.

        Raises:
            RunFileError: it is before a branch point and the parent is missing.
        """
        point = self.reader.first - 1
        return self.reader if not 1 <= number < point else self._above(number).holder(number)

    def close(self) -> None:
        """Close the parents' files. The reader belongs to its owner and remains open."""
        if self._parent is not None:
            self._parent.close()
            self._parent.reader.close()
            self._parent = None

    def _above(self, number: int) -> Lineage:
        if self._parent is None:
            meta = self.reader.meta
            if meta.parent and (meta.parent[0] in self._ids or len(self._ids) > MOST_ANCESTORS):
                raise RunFileError(
                    tr("{name} claims to be branched from itself; the file is damaged.").format(
                        name=self.reader.path.name
                    )
                )
            path = find(self._folder, meta.parent[0], meta.parent_path) if meta.parent else None
            if path is None:
                raise RunFileError(
                    tr(
                        "Update {number} is in the run that {name} was branched from, and that run no longer exists; "
                        "its curves are kept here."
                    ).format(number=number, name=self.reader.path.name)
                )
            self._parent = Lineage(RunReader.open(path), self._folder, self._ids)
        return self._parent


def _entry(path: Path) -> Entry:
    seen = Entry(path=path, in_use=in_use(path))
    try:
        with RunReader.open(path) as reader:
            if reader.last:
                reader.series("reward_mean", reader.last - 1)  # raises if it is damaged
            return replace(seen, meta=reader.meta, steps=reader.last)
    except RunFileError as error:
        return replace(seen, error=str(error))


def _paths(folder: Path) -> list[Path]:
    """Return the run files of ``folder``, the last written first. Names of temporary files begin with a dot."""
    with suppress(OSError):
        paths = [path for path in folder.glob(f"*{SUFFIX}") if path.is_file() and not path.name.startswith(".")]
        return sorted(paths, key=lambda path: (_modified(path), path.name), reverse=True)
    return []


def _modified(path: Path) -> float:
    newest = 0.0
    for file in files_of(path)[:2]:
        with suppress(OSError):
            newest = max(newest, file.stat().st_mtime)
    return newest
