"""Session files, which a teacher prepares and hands out: a zip of a manifest and closed run files.

``manifest.json`` describes the window's layout and the available controls. ``runs/1.grpo``, ``runs/2.grpo``, ... are
the runs that the manifest describes, in that order. Names inside the zip are compared, never used as paths. Opening a
session creates copies and leaves the zip unchanged. The entries of the zip are checked before a run is read.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import time
import typing
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.metrics import METRICS
from grpo_core.regular_file import opened_regular
from grpo_core.runs import library
from grpo_core.runs.database import CANNOT, explained
from grpo_core.runs.files import replacing, size_of
from grpo_core.runs.manifest import LONGEST_NAME, Manifest, SessionError, SessionRun, manifest_from, manifest_text
from grpo_core.runs.meta import RunMeta
from grpo_core.runs.run_file import RunReader, copy_run
from grpo_core.text import plural, tr

__all__ = ["SUFFIX", "Manifest", "SessionError", "SessionRun", "open_session", "save_session"]

SUFFIX = ".grposession"
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 4_000_000
LARGEST = 50_000_000_000
"""Maximum size in bytes of all runs of a session together."""
MOST_ENTRIES = 1000
MOST_TIMES = 200
"""Maximum compression factor of an entry. Computed numbers can be compressed to one half at best."""
_SMALL = 1 << 20
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
SPARE = 100_000_000
"""Number of bytes that must remain free on the disk."""
PROCESSOR_SECONDS = 5.0
"""Processor time in seconds for reading all runs of a session. Ten million updates take one or two seconds."""
_PIECE = 1 << 20


def save_session(
    path: Path,
    manifest: Manifest,
    runs: Sequence[Path],
    poll: Callable[[float], object] = lambda fraction: None,
) -> Manifest:
    """Write a session file. An existing ``path`` is only replaced when the new file is complete. Return the manifest.

    Args:
        manifest: what the window shows; its ``runs`` are filled in here.
        runs: run files, possibly being written. Ancestors of branches are included.
        poll: called between pieces with the finished fraction, from 0 to 1; may raise to stop. Then nothing is written.

    Raises:
        GrpoError: a run cannot be read, or the file cannot be written.
    """
    described, files = _with_ancestors(runs)
    manifest = replace(manifest, runs=described)
    text = manifest_text(manifest)
    with zip_explained(path, "written"):
        if not path.parent.is_dir():
            raise SessionError(tr("There is no folder {parent}; choose one that exists.").format(parent=path.parent))
        if path.is_dir():
            raise SessionError(tr("{path} is a folder; choose a name for the session.").format(path=path))
    with zip_explained(path, "written"), replacing(path) as temporary, temporary.open("wb") as whole:
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(zipfile.ZipInfo(MANIFEST), text, zipfile.ZIP_DEFLATED)  # without the clock's date
            pouring = _Pouring(sum(map(size_of, files)), poll)
            for number, file in enumerate(files, 1):
                with tempfile.TemporaryDirectory(prefix=".grpo-session-", dir=path.parent) as space:
                    copy = Path(space, "run.grpo")
                    copy_run(file, copy, lambda _: pouring.tell())
                    with copy.open("rb") as source, archive.open(entry_name(number), "w", force_zip64=True) as writing:
                        pouring.pour(source, writing)
        whole.flush()
        os.fsync(whole.fileno())
    return manifest


def open_session(
    path: Path, scratch: Path, poll: Callable[[float], object] = lambda fraction: None
) -> tuple[Manifest, tuple[Path, ...]]:
    """Copy the runs of a session to ``scratch``, an empty folder that the caller deletes.

    Args:
        poll: called between pieces with the finished fraction, from 0 to 1; may raise to stop.

    Returns:
        The manifest, and the paths of the copies in the order of its runs.

    Raises:
        SessionError: it is missing, damaged, not a session, from a newer version, or has forbidden content; or a run in
            it is damaged, or there is not enough space.
        RunFileError: a copy cannot be written.
    """
    copies: list[Path] = []
    spent = 0.0
    with reading(path) as archive:
        manifest = checked(path, archive)
        _check_space(path, archive, scratch)
        pouring = _Pouring(sum(entry.file_size for entry in archive.infolist()), poll)
        for number, run in enumerate(manifest.runs, 1):
            copy = library.new_path(scratch, run.title)
            with explained(copy, "written"), archive.open(entry_name(number)) as source, copy.open("wb") as writing:
                pouring.pour(source, writing)
            spent += _check_run(path, copy, number)
            if spent > PROCESSOR_SECONDS:
                raise SessionError(
                    tr("{name} cannot be opened: reading its runs takes far too long.").format(name=path.name)
                )
            copies.append(copy)
    return manifest, tuple(copies)


def adopt_copies(manifest: Manifest, copies: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """Move the ``copies`` of a session's runs to ``folder`` under new names, either all of them or none.

    Raises:
        RunFileError: ``folder`` cannot be written.
    """
    places: list[Path] = []
    try:
        for copy, run in zip(copies, manifest.runs, strict=True):
            place = library.new_path(folder, run.title)
            with explained(place, "written"):
                copy.replace(place)
            places.append(place)
    except BaseException:
        for place in places:
            place.unlink(missing_ok=True)
        raise
    return tuple(places)


def _with_ancestors(runs: Sequence[Path]) -> tuple[tuple[SessionRun, ...], list[Path]]:
    """Return descriptions and files of the runs, followed by those of the ancestors of branches.

    Ancestors provide the first updates of a branch.
    """
    described: list[SessionRun] = []
    files: list[Path] = []
    known: dict[str, tuple[Path, RunMeta]] = {}
    fresh = [(path, True) for path in runs]
    while fresh:
        for path, listed in fresh:
            with RunReader.open(path) as reader:
                known[reader.meta.id] = (path.parent, reader.meta)
                described.append(SessionRun(title=reader.meta.title[:LONGEST_NAME], listed=listed))
            files.append(path)
        absent = [(folder, meta) for folder, meta in known.values() if meta.parent and meta.parent[0] not in known]
        parents = {meta.parent[0]: (folder, meta.parent_path) for folder, meta in absent if meta.parent}
        places = [library.find(folder, id, hint) for id, (folder, hint) in parents.items()]
        fresh = [(place, False) for place in places if place is not None]  # the others are missing in the original too
    return tuple(described), files


def _check_space(path: Path, archive: zipfile.ZipFile, folder: Path) -> None:
    with explained(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    needed = sum(entry.file_size for entry in archive.infolist())
    if needed > LARGEST or needed > max(free - SPARE, 0):
        raise SessionError(
            tr(
                "The runs in {name} need {needed:,.0f} MB, but {free:,.0f} MB are free in {folder}; free some space "
                "first."
            ).format(name=path.name, needed=needed / 1e6, free=free / 1e6, folder=folder)
        )


def _check_run(path: Path, copy: Path, number: int) -> float:
    """Check the parts of the copy that a window reads when it opens it. Return the processor time used, in seconds.

    Raises:
        SessionError: it is damaged; the message says why.
    """
    begun = time.thread_time()
    try:
        with RunReader.open(copy) as reader:
            _ = reader.origin, reader.settings_changes()
            with suppress(RunFileError):  # reported when the run is opened; it does not affect others
                for name in METRICS:
                    reader.series(name)
    except GrpoError as error:
        why = str(error).replace(copy.name, f"run {number}")
        raise SessionError(
            tr("{name} cannot be opened because of run {number} in it: {why}").format(
                name=path.name, number=number, why=why
            )
        ) from error
    return time.thread_time() - begun


class _Pouring:
    """Copying of the contents of several files, with ``total`` bytes in all. ``poll`` gets the finished fraction."""

    def __init__(self, total: int, poll: Callable[[float], object]) -> None:
        self._total, self._poll, self._done = max(total, 1), poll, 0

    def pour(self, source: IO[bytes], target: IO[bytes]) -> None:
        while piece := source.read(_PIECE):
            self.tell()
            target.write(piece)
            self._done += len(piece)
        self.tell()

    def tell(self) -> None:
        self._poll(min(self._done / self._total, 1.0))


# -- the zip file ------------------------------------------------------------------------------------------------------


def entry_name(number: int) -> str:
    """Return the name of run ``number``, counted from 1, inside the zip."""
    return f"runs/{number}.grpo"


@contextmanager
def reading(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the zip at ``path``.

    Raises:
        SessionError: it is missing, empty, not a zip, or damaged where the block reads it.
    """
    with zip_explained(path, "read"):
        if path.is_dir():
            raise SessionError(
                tr("{path} is a folder; choose a session file, whose name ends in {suffix}.").format(
                    path=path, suffix=SUFFIX
                )
            )
        try:
            file = opened_regular(path)
        except FileNotFoundError:
            raise SessionError(tr("There is no session file at {path}.").format(path=path)) from None
        with file, _archive(path, file) as archive:
            yield archive


class _Pieces:
    """A file wrapper that rejects long reads, because zipfile reads a zip's directory, however large, at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable, self.close = file.seek, file.tell, file.seekable, file.close

    def read(self, size: int = -1) -> bytes:
        if size > LARGEST_MANIFEST:
            raise zipfile.BadZipFile("its directory is longer than any session's")
        return self._file.read(size)


def _archive(path: Path, file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(typing.cast(BinaryIO, _Pieces(file)))
    except zipfile.BadZipFile:
        sentence = (
            tr("{name} is empty: nothing was ever written to it. Session files are written by GRPO Lab.")
            if path.stat().st_size == 0
            else tr("{name} is not a session file, or it was cut short. Session files are written by GRPO Lab.")
        )
        raise SessionError(sentence.format(name=path.name)) from None


@contextmanager
def zip_explained(path: Path, doing: str) -> Iterator[None]:
    """Context manager that converts errors of the zip and the file system into an error message."""
    try:
        yield
    except GrpoError:
        raise
    except OSError as error:
        try:
            with explained(path, doing):
                raise error
        except RunFileError as cause:
            raise SessionError(str(cause)) from error
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, OverflowError, RuntimeError) as error:
        raise SessionError(
            CANNOT[doing].format(name=path.name, why=tr("the file is damaged or was cut short"))
        ) from error


def checked(path: Path, archive: zipfile.ZipFile) -> Manifest:
    """Check that a session's zip has all required entries and none that points outside it. Returns its manifest.

    Raises:
        SessionError: the session is invalid; the message says why.
    """
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(entries) > MOST_ENTRIES:
        raise SessionError(
            plural(
                "{name} contains {count:,} file; a session contains a manifest and its runs.",
                "{name} contains {count:,} files; a session contains a manifest and its runs.",
                len(entries),
            ).format(name=path.name, count=len(entries))
        )
    for name in names:
        if name.startswith(("/", "\\")) or "\\" in name or ":" in name or ".." in name.split("/"):
            raise SessionError(
                tr(
                    "{name} contains a file called “{name2}”, which points outside of it; the session was not opened."
                ).format(name=path.name, name2=name[:80])
            )
    if len(set(names)) < len(names):
        raise SessionError(tr("{name} contains two files of the same name; it is damaged.").format(name=path.name))
    if MANIFEST not in names:
        raise SessionError(
            tr("{name} is a zip file without a {manifest}, so it is not a session.").format(
                name=path.name, manifest=MANIFEST
            )
        )
    by_name = dict(zip(names, entries, strict=True))
    _check_entry(path, by_name[MANIFEST], LARGEST_MANIFEST)
    manifest = manifest_from(archive.read(MANIFEST), path.name)
    for number in range(1, len(manifest.runs) + 1):
        if entry_name(number) not in by_name:
            raise SessionError(
                plural(
                    "{name} names {count} run, but run {number} is not in it.",
                    "{name} names {count} runs, but run {number} is not in it.",
                    len(manifest.runs),
                ).format(name=path.name, count=len(manifest.runs), number=number)
            )
        _check_entry(path, by_name[entry_name(number)], LARGEST)
    return manifest


def _check_entry(path: Path, entry: zipfile.ZipInfo, largest: int) -> None:
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        raise SessionError(
            tr("{filename} in {name} is compressed in a way that sessions do not use.").format(
                filename=entry.filename, name=path.name
            )
        )
    if entry.file_size > largest:
        raise SessionError(
            tr("{filename} in {name} would have {file_size:,} bytes; at most {largest:,} are allowed.").format(
                filename=entry.filename, name=path.name, file_size=entry.file_size, largest=largest
            )
        )
    if entry.file_size > _SMALL and entry.file_size > MOST_TIMES * max(entry.compress_size, 1):
        raise SessionError(
            tr(
                "{filename} in {name} would grow from {compress_size:,} to {file_size:,} bytes, which no run does; "
                "the session was not opened."
            ).format(
                filename=entry.filename, name=path.name, file_size=entry.file_size, compress_size=entry.compress_size
            )
        )
