"""A table of a lesson file, read key by key. Wrong types and unread keys are errors that name their line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from grpo_core.errors import GrpoError
from grpo_core.parsing import is_number, is_whole
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
        line: line of the error, counted from 1.
    """

    def __init__(self, file: str, line: int, what: str) -> None:
        self.file, self.line = file, line
        what = what if len(what) <= LONGEST else what[:LONGEST] + "…"
        super().__init__(tr("{file}, line {line}: {what}.").format(file=file, line=line, what=what))


class Source:
    """The text of a lesson file, for error messages with line numbers."""

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


MISSING = object()


class Table:
    """A table of a TOML lesson file, which keeps track of the keys that were read and reports where errors are."""

    def __init__(self, source: Source, place: Place, data: Any) -> None:
        """Wrap ``data``, the table at ``place``.

        Raises:
            LessonError: ``data`` is not a table.
        """
        self.source, self.place = source, place
        if not isinstance(data, dict):
            raise source.error(place, tr("a table is expected here, not {found}").format(found=_named(data)))
        self._data: dict[str, Any] = data
        self._asked: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def error(self, key: str, what: str) -> LessonError:
        return self.source.error((*self.place, key) if key else self.place, what)

    def any(self, key: str, default: Any = MISSING) -> Any:
        """Return the value under ``key``.

        Raises:
            LessonError: the key is missing and there is no default.
        """
        self._asked.append(key)
        value = self._data.get(key, default)
        if value is MISSING:
            raise self.error("", tr("“{key}” is missing").format(key=key))
        return value

    def text(self, key: str, default: Any = MISSING) -> str:
        """Read a string, with each run of spaces and line breaks replaced by one space."""
        value = self.any(key, default)
        if not isinstance(value, str) or (default is MISSING and not value.strip()):
            raise self.error(key, tr("a text is expected, not {found}").format(found=_named(value)))
        return " ".join(value.split())

    def said(self, key: str, default: Any = MISSING) -> str:
        """Read a translatable string."""
        text = self.text(key, default)
        return tr(text) if text else ""

    def number(self, key: str, default: Any = MISSING) -> float:
        """Read a number, which can be infinite."""
        value = self.any(key, default)
        if not is_number(value) or value != value:
            raise self.error(key, tr("a number is expected, not {found}").format(found=_named(value)))
        return float(value)

    def whole(self, key: str, default: Any = MISSING, low: int = 0) -> int:
        """Read an integer of at least ``low``."""
        value = self.any(key, default)
        if not is_whole(value, low):
            raise self.error(
                key,
                tr("a whole number of at least {low} is expected, not {found}").format(low=low, found=_named(value)),
            )
        return value

    def word(self, key: str, allowed: Sequence[str], default: Any = MISSING) -> str:
        """Read a string that must be one of ``allowed``."""
        value = self.text(key, default)
        self.check_words(key, (value,), allowed)
        return value

    def check_words(self, key: str, words: Sequence[str], allowed: Sequence[str]) -> None:
        """Reject the value under ``key`` if one of its ``words`` is not ``allowed``."""
        for word in words:
            if word not in allowed:
                raise self.error(
                    key,
                    tr("“{value}” is unknown here; there {known}{nearest}").format(
                        value=word, known=_there_is(allowed), nearest=nearest(word, allowed)
                    ),
                )

    def like(self, key: str, usual: object) -> Any:
        """Read a value of the type of ``usual``: a switch, a number, a text, or a list of numbers or of texts.

        Raises:
            TypeError: there is no such type in lesson files.
        """
        match usual:
            case bool():
                value = self.any(key)
                if not isinstance(value, bool):
                    raise self.error(key, tr("true or false is expected, not {found}").format(found=_named(value)))
                return value
            case int():
                return self.whole(key)
            case float():
                return self.number(key)
            case str():
                return self.text(key, "")
            case (int() | float(), *_):
                numbers = self.any(key)
                if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
                    sentence = tr("a list of numbers is expected, not {found}")
                    raise self.error(key, sentence.format(found=_named(numbers)))
                return tuple(map(float, numbers))
            case tuple():
                return self.texts(key)
        raise TypeError(usual)

    def texts(self, key: str, default: Any = MISSING) -> tuple[str, ...]:
        """Read a list of strings."""
        values = self.any(key, default)
        if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
            raise self.error(key, tr("a list of texts is expected, not {found}").format(found=_named(values)))
        return tuple(values)

    def pair(self, key: str, default: Any = MISSING) -> tuple[float, float]:
        """Read two numbers, the lower first."""
        values = self.any(key, default)
        good = isinstance(values, (list, tuple)) and len(values) == 2
        if not good or not all(map(is_number, values)):
            raise self.error(key, tr("two numbers [low, high] are expected, not {found}").format(found=_named(values)))
        if not values[0] <= values[1]:
            raise self.error(key, tr("the lower number must come first"))
        return float(values[0]), float(values[1])

    def table(self, key: str, default: Any = MISSING) -> Table:
        return Table(self.source, (*self.place, key), self.any(key, default))

    def tables(self, key: str, default: Any = MISSING) -> list[Table]:
        """Read the array of tables ``key``. Returns ``default`` if the file does not have it."""
        values = self.any(key, default)
        if not isinstance(values, (list, tuple)):
            raise self.error(
                key, tr("a list of tables, [[{key}]], is expected, not {found}").format(key=key, found=_named(values))
            )
        return [Table(self.source, (*self.place, key, n), value) for n, value in enumerate(values)]

    def done(self) -> None:
        """Reject this table if it has keys that were not read.

        Raises:
            LessonError: a key was not read.
        """
        for key in self._data:
            if key not in self._asked:
                known = sorted(set(self._asked))
                raise self.error(
                    key,
                    tr("this key is unknown here; there {known}{nearest}").format(
                        known=_there_is(known), nearest=nearest(key, known)
                    ),
                )

    def plain(self) -> dict[str, Any]:
        """Return the complete table as a dictionary for settings. Lists are converted to tuples."""
        self._asked += list(self._data)
        return {key: tuple(value) if isinstance(value, list) else value for key, value in self._data.items()}


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a suggestion of the most similar word in ``known``, to end an error message. Empty if none is similar."""
    close = difflib.get_close_matches(word, [name for name in known if name], n=1)
    return tr("; the nearest is “{name}”").format(name=close[0]) if close else ""


def _there_is(words: Sequence[str]) -> str:
    words = [f"“{word}”" if word else tr("nothing", "value") for word in words]
    if len(words) < 2:
        return tr("is only {words}").format(words=words[0]) if words else tr("is nothing")
    return tr("are {words} and {words2}").format(words=", ".join(words[:-1]), words2=words[-1])


def _named(value: Any) -> str:
    if isinstance(value, dict):
        return tr("a table")
    if isinstance(value, (list, tuple)):
        return tr("a list")
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = f"“{value}”" if isinstance(value, str) else str(value)
    return shown if len(shown) <= 40 else shown[:39] + "…"
