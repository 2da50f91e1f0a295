"""Reader of the rows of any table, as mappings from column to value: JSON, JSON Lines, CSV, TSV or Parquet.

Another program may still be writing a file of JSON Lines.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.parsing import ParseError, from_json
from grpo_core.regular_file import opened_regular, read_limited
from grpo_core.text import plural, tr
from grpo_core.trainers.importers.parquet import Columns

LINES = (".jsonl", ".ndjson")
TABLES = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*LINES, ".json", ".parquet", *TABLES)
MOST_ROWS, MOST_CHARACTERS = 200_000, 1 << 29
"""Maximum numbers of rows and characters that are read from one file at once."""
MOST_COLUMNS = 5_000
LARGEST = 1 << 28
"""Maximum size in bytes of a JSON file, which has to be parsed as a whole."""
SAMPLE = 20
"""Number of rows from which the columns of a file are recognised."""

Record = dict[str, Any]
_BEFORE = re.compile(r"[\s\ufeff]*[\[,]\s*")
"""What stands before a value of a list in JSON."""
LONGEST_LINE = 64 << 20
"""Maximum size of one line in bytes."""
NOTED = 10
"""Maximum number of invalid lines that are noted individually."""
MOST_BAD = 100_000
"""Maximum number of invalid lines that are skipped. If there are more, the rest of the file is skipped, too."""


@dataclass
class Place:
    """Position after a line of a file, in bytes and lines from its beginning."""

    byte: int = 0
    lines: int = 0


def complete_lines(path: Path, notes: list[str], *, note_torn: bool = False) -> Iterator[Any]:
    """Yield the values of the complete lines of ``path``, or nothing if there is no such file.

    A last line without a line end is incomplete and is skipped. Unreadable lines are reported in notes.

    Args:
        note_torn: whether to accept a last line without a line end if it is complete JSON, and to note it otherwise.
    """
    for _, value in placed_lines(path, notes, note_torn=note_torn):
        yield value


def placed_lines(
    path: Path,
    notes: list[str],
    *,
    note_torn: bool = False,
    at: Place | None = None,
    parse: Callable[[bytes], Any] = json.loads,
) -> Iterator[tuple[int, Any]]:
    """Yield values like :func:`complete_lines`, each with the byte offset of its line.

    Args:
        at: position to start from; advanced past each complete line.
        parse: function from a line to its value; raises ValueError if it is not JSON.
    """
    try:
        file = opened_regular(path)
    except (OSError, ValueError):
        return
    with file:
        at = Place() if at is None else at
        file.seek(at.byte)
        number, end, bad = at.lines, at.byte, 0
        while line := file.readline(LONGEST_LINE):
            number, start, end = number + 1, end, end + len(line)
            if not line.endswith(b"\n"):
                if len(line) == LONGEST_LINE:
                    notes.append(
                        tr("Line {number} of {name} is longer than {most:,} bytes; reading stops there.").format(
                            number=number, name=path.name, most=LONGEST_LINE
                        )
                    )
                    return
                if not note_torn:
                    return
            else:
                at.byte, at.lines = end, number
            try:
                yield start, parse(line)
            except (ValueError, RecursionError):
                bad += 1
                if bad > MOST_BAD:
                    break
                if bad > NOTED:
                    continue
                sentence = (
                    tr("Line {number} of {name} is not JSON and is left out.")
                    if line.endswith(b"\n")
                    else tr("Line {number}, the last of {name}, is incomplete or still being written and is left out.")
                )
                notes.append(sentence.format(number=number, name=path.name))
        if bad > MOST_BAD:
            notes.append(
                plural(
                    "More than {most:,} line of {name} is not JSON; the rest is left out.",
                    "More than {most:,} lines of {name} are not JSON; the rest is left out.",
                    MOST_BAD,
                ).format(most=MOST_BAD, name=path.name)
            )
        elif bad > NOTED:
            notes.append(
                plural(
                    "{count:,} more line of {name} is not JSON and is left out.",
                    "{count:,} more lines of {name} are not JSON and are left out.",
                    bad - NOTED,
                ).format(count=bad - NOTED, name=path.name)
            )


def records(path: Path, notes: list[str]) -> Iterator[Record]:
    """Yield the rows of a file. What is left out is noted.

    Raises:
        GrpoError: pyarrow is needed and not installed.
        RunFileError: the file cannot be read, or is too large.
    """
    return limited(table_rows(path, notes), path, notes)


def limited(rows: Iterable[Record], path: Path, notes: list[str]) -> Iterator[Record]:
    """Yield the rows of one step up to the limits, and note that a file has more."""
    characters = 0
    for count, record in enumerate(rows):
        characters += sum(len(value) for value in record.values() if isinstance(value, str))
        if count == MOST_ROWS or characters > MOST_CHARACTERS:
            notes.append(
                tr("{name} is larger than the limit for one step; its first rows are shown ({count:,}).").format(
                    name=path.name, count=count
                )
            )
            return
        yield record


def sample(path: Path) -> list[Record]:
    """Return the first rows of a file, or none if it cannot be read."""
    try:
        if path.suffix.lower() == ".parquet":
            return Columns(path).head(SAMPLE)
        return list(islice(table_rows(path, []), SAMPLE))
    except (GrpoError, OSError, ValueError):
        return []


def listed(value: Any) -> list[Record] | None:
    """Return the rows of a list of objects or of W&B's table. None if a JSON value is neither."""
    if isinstance(value, list):
        return [row for row in value if isinstance(row, dict)]
    names, data = (value.get("columns"), value.get("data")) if isinstance(value, dict) else (None, None)
    if not isinstance(names, list) or not isinstance(data, list):
        return None
    return [dict(zip(map(str, names), row, strict=False)) for row in data if isinstance(row, list)]


def rows_in(value: Any) -> list[Record]:
    """Return the rows of a parsed JSON value: an object, a list of objects, or an object of lists of one length."""
    if (rows := listed(value)) is not None:
        return rows
    if not isinstance(value, dict) or not value:
        return []
    lengths = {len(each) if isinstance(each, list) else -1 for each in value.values()}
    if len(lengths) == 1 and lengths != {-1} and len(value) > 1:
        return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    return [value]


def table_rows(path: Path, notes: list[str], rows_in: Callable[[Any], list[Record]] = rows_in) -> Iterator[Record]:
    """Yield all rows of a table, without a limit on their number. What is left out is noted.

    Args:
        rows_in: function from a JSON value, of the file or of one of its lines, to the rows in it.

    Raises:
        GrpoError: pyarrow is needed and not installed.
        RunFileError: the file cannot be read, or is too large.
    """
    suffix = path.suffix.lower()
    if suffix in LINES:
        for value in complete_lines(path, notes, note_torn=True):
            yield from rows_in(value)
    elif suffix == ".json":
        yield from rows_in(json_value(path, notes))
    elif suffix in TABLES:
        yield from _of_csv(path, TABLES[suffix])
    elif suffix == ".parquet":
        yield from Columns(path).records()
    else:
        raise RunFileError(tr("{name} is not a table of rows.").format(name=path.name))


def json_value(path: Path, notes: list[str]) -> Any:
    """Return the value in a JSON file, which is parsed as a whole. If a list is cut off, as by a program that failed
    while writing it, return what is complete, and note this.

    Raises:
        RunFileError: it is not JSON, or too large.
        OSError: it cannot be opened.
    """
    content = read_limited(path, LARGEST)
    if content is None:
        raise RunFileError(
            tr("{name} is longer than {most:,} bytes; write one object per line (JSON Lines) instead.").format(
                name=path.name, most=LARGEST
            )
        )
    text = content.decode(json.detect_encoding(content), "replace")
    try:
        return from_json(text)
    except ParseError as error:
        why, found = shortened(str(error)), _complete(text)
    if not found:
        raise RunFileError(tr("{name} is not JSON: {error}.").format(name=path.name, error=why))
    notes.append(
        plural(
            "{name} is damaged or cut off ({error}): only the {count:,} row before that is read.",
            "{name} is damaged or cut off ({error}): only the {count:,} rows before that are read.",
            len(found),
        ).format(name=path.name, error=why, count=len(found))
    )
    return found


def _complete(text: str) -> list[Any]:
    """Return the values at the beginning of a list in JSON, up to the first that is incomplete."""
    found, at, decoder = list[Any](), 0, json.JSONDecoder()
    with suppress(ValueError, RecursionError):
        while (before := _BEFORE.match(text, at)) is not None:
            value, at = decoder.raw_decode(text, before.end())
            found.append(value)
    return found


def _of_csv(path: Path, delimiter: str) -> Iterator[Record]:
    """Yield the rows of a table, whose first line may show another ``delimiter``. A missing cell is None."""
    csv.field_size_limit(LONGEST_LINE)
    with opened_regular(path) as file, io.TextIOWrapper(file, "utf-8-sig", "replace", newline="") as text:
        first = text.readline(1 << 20)
        text.seek(0)
        table = csv.reader(text, delimiter=max((delimiter, ";", "\t", ","), key=first.count))
        try:
            names = [name.strip() for name in next(table, [])[:MOST_COLUMNS]]
            for row in filter(None, table):
                yield dict(zip(names, chain(row, repeat(None)), strict=False))
        except csv.Error as error:
            raise RunFileError(
                tr("{name} cannot be read as a table: {error}.").format(name=path.name, error=error)
            ) from None
