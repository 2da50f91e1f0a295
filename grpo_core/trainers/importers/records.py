"""Reader of the rows of any table, as mappings from column to value: JSON, JSON Lines, CSV, TSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.parsing import ParseError, from_json
from grpo_core.regular_file import opened_regular, read_limited
from grpo_core.text import tr
from grpo_core.trainers.importers.jsonl import LONGEST_LINE, complete_lines
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
        yield from rows_in(json_value(path))
    elif suffix in TABLES:
        yield from _of_csv(path, TABLES[suffix])
    elif suffix == ".parquet":
        yield from Columns(path).records()
    else:
        raise RunFileError(tr("{name} is not a table of rows.").format(name=path.name))


def json_value(path: Path) -> Any:
    """Return the value in a JSON file, which is parsed as a whole.

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
    try:
        return from_json(content.decode(json.detect_encoding(content), "replace"))
    except ParseError as error:
        raise RunFileError(
            tr("{name} is not JSON: {error}.").format(name=path.name, error=shortened(str(error)))
        ) from None


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
