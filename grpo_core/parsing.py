"""Parsers of JSON, TOML and CSV from other people: every fault is one error, and none takes longer than reading does.

No other module parses what other people wrote, except in the process for untrusted files (``tests/test_gate.py``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from grpo_core.text import plural, tr

if TYPE_CHECKING:
    import csv

LONGEST_CELL = 1 << 17
"""Maximum number of characters in a cell of a CSV text."""
MOST_PARTS, LONGEST_WORD = 8, 100
"""Maximum number of parts of a dotted key in TOML, and of characters of a number or of a key without quotes.

Python's parser takes the square of the number of parts, and raises an error of its own for 4,301 digits.
"""
_PART = r"""(?:"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?|[A-Za-z0-9_-]++)"""
_DOT = r"[ \t]*+\.[ \t]*+"
_TOKEN = re.compile(
    r"\"{3}(?:\\.|[^\\])*?(?:\"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)|\#[^\n]*+"  # texts of several lines, and comments
    rf"|(?P<long>[A-Za-z0-9_-]{{{LONGEST_WORD + 1}}})"
    rf"|{_PART}(?:{_DOT}{_PART}){{0,{MOST_PARTS - 1}}}+(?P<deep>{_DOT}{_PART})?",
    re.DOTALL,
)


class ParseError(ValueError):
    """Raised if a text cannot be parsed.

    Attributes:
        line: number of the line, from 1.
        nested: whether it is nested too deeply.
        misplaced: whether it is not in the language at all, rather than beyond our limits.
    """

    def __init__(self, reason: str, line: int = 1, *, nested: bool = False, misplaced: bool = False) -> None:
        super().__init__(reason)
        self.line, self.nested, self.misplaced = line, nested, misplaced


def from_json(content: str | bytes, *, constant: Callable[[str], object] | None = None) -> Any:
    """Return the value of a JSON text, whose size the caller has limited.

    Args:
        content: the text, or its bytes in UTF-8.
        constant: called with “NaN”, “Infinity” or “-Infinity”, which are numbers by default.

    Raises:
        ParseError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(content, parse_constant=constant)
    except RecursionError:
        raise ParseError(tr("it is nested too deeply"), nested=True) from None
    except json.JSONDecodeError as error:
        raise ParseError(str(error), error.lineno, misplaced=True) from None
    except ParseError:
        raise
    except ValueError as error:  # a number of too many digits, or bytes that are not UTF-8
        raise ParseError(str(error), misplaced=True) from None


def is_number(value: object) -> bool:
    """Return whether a parsed value is a number and not a switch."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value: object, low: float = -math.inf, high: float = math.inf) -> TypeGuard[int]:
    """Return whether a parsed value is an integer from ``low`` to ``high``, and not a switch."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def object_in(content: object) -> dict[str, Any] | None:
    """Return the object of a JSON text, whose size the caller has limited. None if it is anything else."""
    try:
        value = from_json(content if isinstance(content, str | bytes) else b"")
    except ParseError:
        return None
    return value if isinstance(value, dict) else None


def from_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text, whose size the caller has limited.

    Raises:
        ParseError: it is not TOML, is nested too deeply, or has a key or a number that takes too long to parse.
    """
    import tomllib

    for token in _TOKEN.finditer(text):
        if token["long"] or token["deep"]:
            what = (
                plural("a dotted key has more than {most} part", "a dotted key has more than {most} parts", MOST_PARTS)
                if token["deep"]
                else plural(
                    "a key or a number is longer than {longest} character",
                    "a key or a number is longer than {longest} characters",
                    LONGEST_WORD,
                )
            )
            line = text.count("\n", 0, token.start()) + 1
            raise ParseError(what.format(most=MOST_PARTS, longest=LONGEST_WORD), line)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        line = int(place[1]) if place else max(len(text.splitlines()), 1)
        raise ParseError(str(error).partition(" (at")[0], line, misplaced=True) from None
    except RecursionError:
        raise ParseError(tr("tables are nested too deeply"), nested=True) from None


def column_name(name: str) -> str:
    """Return the name of a column in the form in which names are compared: lower case, other characters as ``_``."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).rstrip("_")


def csv_lines(lines: Iterable[str]) -> list[list[str]]:
    """Return the cells of a CSV text without column names, by line.

    Raises:
        ParseError: it is not CSV.
    """
    import csv

    reader = csv.reader(lines)
    try:
        return [*reader]
    except csv.Error as error:
        raise ParseError(str(error), reader.line_num, misplaced=True) from None


def csv_rows(lines: Iterable[str]) -> tuple[list[str], Iterator[tuple[int, dict[str, Any]]]]:
    """Return the names of the columns of a CSV text, and an iterator over its rows with the numbers of their lines.

    Raises:
        ParseError: it is not CSV. The iterator raises it too.
    """
    import csv

    csv.field_size_limit(LONGEST_CELL)  # another reader of this process may have changed it
    reader = csv.DictReader(lines, strict=True)

    def wrong(error: csv.Error) -> ParseError:
        return ParseError(str(error), reader.reader.line_num, misplaced=True)

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            raise wrong(error) from None

    try:
        return [*(reader.fieldnames or ())], rows()
    except csv.Error as error:
        raise wrong(error) from None
