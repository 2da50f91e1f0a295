"""Location in a lesson file, and the error that names it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from grpo_core.errors import GrpoError
from grpo_core.text import tr

Place: TypeAlias = tuple[str | int, ...]
"""A path in a TOML document, such as ("steps", 2, "predict", "kind"). Entries of lists are counted from 0."""

_HEADER = re.compile(r"\s*(\[\[|\[)([^\[\]]+)\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*))\s*=")
LONGEST = 1000
"""Maximum number of characters of an error, which may quote the file."""


class LessonError(GrpoError):
    """Raised if a lesson file cannot be used.

    Attributes:
        file: name of the file.
        line: line of the error, counted from 1.
    """

    def __init__(self, file: str, line: int, what: str) -> None:
        self.file, self.line = file, line
        what = what if len(what) <= LONGEST else what[:LONGEST] + "…"
        super().__init__(tr("{file}, line {line}: {what}.").format(file=file, line=line, what=what))


class Source:
    """The text of a lesson file, for error messages with line numbers.

    Attributes:
        path: path of the file.
        text: its contents.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def error(self, place: Place, what: str) -> LessonError:
        """Return an error about the key or table at ``place``, which the message names."""
        return LessonError(self.path.name, line_of(self.text, place), f"{spelled(place)}{what}")


def spelled(place: Place) -> str:
    """Format a location for the author, such as “steps 3, predict, kind: ”. Empty for the file itself."""
    words: list[str] = []
    for part in place:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    return ", ".join(words) + ": " if words else ""


def line_of(text: str, place: Place) -> int:
    """Return the line in which the value at ``place`` begins, or if it is missing, that of its table."""
    found, depth = 1, 0
    here: Place = ()
    counts: dict[Place, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            here = _entered(header[2], header[1] == "[[", counts)
            reached = here
        else:
            key = _KEY.match(line)
            if key is None:
                continue
            reached = (*here, *([key[1] or key[2]] if key[3] is None else key[3].split(".")))
        shared = min(len(reached), len(place))
        if place[:shared] == reached[:shared] and shared > depth:
            found, depth = number, shared
    return found


def _entered(name: str, is_list: bool, counts: dict[Place, int]) -> Place:
    """Return the location of a table from its header. ``counts`` holds the number of entries of each list so far."""
    here: Place = ()
    parts = [part.strip().strip("\"'") for part in name.split(".")]
    for depth, part in enumerate(parts):
        here = (*here, part)
        if is_list and depth == len(parts) - 1:
            counts[here] = counts.get(here, -1) + 1
        if here in counts:
            here = (*here, counts[here])
    return here
