"""Rows of a file as mappings from column to value: JSON, JSON Lines, CSV, TSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.regular_file import opened_regular, read_limited
from grpo_core.text import tr
from grpo_core.trainers.importers.jsonl import LONGEST_LINE, complete_lines
from grpo_core.trainers.importers.parquet import Columns

LINES = (".jsonl", ".ndjson")
TABLES = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*LINES, ".json", ".parquet", *TABLES)
MOST_ROWS, MOST_CHARACTERS = 200_000, 1 << 29
"""Maximum numbers of rows and characters that are read from one file at once."""
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
    characters = 0
    for count, record in enumerate(_records(path, notes)):
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
        return list(islice(_records(path, []), SAMPLE))
    except (GrpoError, OSError, ValueError):
        return []


def rows_in(value: Any) -> list[Record]:
    """Return the rows of a parsed JSON value: an object, a list of objects, or an object of lists of one length."""
    if isinstance(value, list):
        return [row for row in value if isinstance(row, dict)]
    if not isinstance(value, dict) or not value:
        return []
    if value.keys() >= {"columns", "data"} and all(isinstance(value[name], list) for name in ("columns", "data")):
        names = list(map(str, value["columns"]))  # a table of W&B
        return [dict(zip(names, row, strict=False)) for row in value["data"] if isinstance(row, list)]
    lengths = {len(each) if isinstance(each, list) else -1 for each in value.values()}
    if len(lengths) == 1 and lengths != {-1} and len(value) > 1:
        return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    return [value]


def _records(path: Path, notes: list[str]) -> Iterator[Record]:
    suffix = path.suffix.lower()
    if suffix in LINES:
        for value in complete_lines(path, notes, note_torn=True):
            yield from rows_in(value)
    elif suffix == ".json":
        yield from _of_json(path)
    elif suffix in TABLES:
        yield from _of_csv(path, TABLES[suffix])
    elif suffix == ".parquet":
        yield from _of_parquet(path)
    else:
        raise RunFileError(tr("{name} is not a table of rows.").format(name=path.name))


def _of_json(path: Path) -> list[Record]:
    content = read_limited(path, LARGEST)
    if content is None:
        raise RunFileError(
            tr("{name} is longer than {most:,} bytes; write one object per line (JSON Lines) instead.").format(
                name=path.name, most=LARGEST
            )
        )
    try:
        return rows_in(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise RunFileError(
            tr("{name} is not JSON ({error}).").format(name=path.name, error=shortened(str(error)))
        ) from None


def _of_csv(path: Path, delimiter: str) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_LINE)
    with opened_regular(path) as file, io.TextIOWrapper(file, "utf-8-sig", "replace", newline="") as text:
        try:
            for row in csv.DictReader(text, delimiter=delimiter):
                yield {name: value for name, value in row.items() if isinstance(name, str)}
        except csv.Error as error:
            raise RunFileError(
                tr("{name} is not a table of comma-separated values ({error}).").format(name=path.name, error=error)
            ) from None


def _of_parquet(path: Path) -> Iterator[Record]:
    columns = Columns(path).load()
    values = [columns.values(name) for name in columns.names]
    for row in zip(*values, strict=True):
        yield dict(zip(columns.names, row, strict=True))
