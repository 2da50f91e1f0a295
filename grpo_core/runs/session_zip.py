"""The zip file of a session: opening, validation, and error messages."""

from __future__ import annotations

import struct
import typing
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.regular_file import opened_regular
from grpo_core.runs.database import CANNOT, explained
from grpo_core.runs.manifest import Manifest, SessionError, manifest_from
from grpo_core.text import plural, tr

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
