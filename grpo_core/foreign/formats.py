"""The formats of runs recorded by other programs, which parts contribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grpo_core import parts
from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.text import tr


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
