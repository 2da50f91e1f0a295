"""The columns of a table that no importer recognises, for a user who says what they mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import GrpoError, shortened
from grpo_core.trainers.concepts import concept_of, logged_name
from grpo_core.trainers.importers import importer_for, place_of
from grpo_core.trainers.importers.records import SUFFIXES, Record, sample
from grpo_core.trainers.importers.row_columns import OF_PARTS, PART, meanings
from grpo_core.trainers.importers.scalar_rows import HEAD, number, rows_of

MOST_COLUMNS, EXAMPLES, LONGEST = 200, 3, 40
"""Maximum numbers of columns, of example values per column, and of characters per value."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        name: its name.
        examples: some of its values, shortened.
        meaning: the meaning by which its name is known (:data:`.row_columns.MEANINGS` or :data:`.concepts.CONCEPTS`),
            or empty. Only parts of the reward can be several columns.
    """

    name: str
    examples: tuple[str, ...]
    meaning: str


def is_table(path: Path) -> bool:
    """Return whether the run at ``path`` is in a file whose name is that of a table."""
    return place_of(path).suffix.lower() in SUFFIXES


def columns(path: str, *, poll: Callable[[], None]) -> Iterator[list[Column]]:
    """Yield the columns of the table at ``path``, an empty list if it is none or if an importer recognises it."""
    file = place_of(Path(path))
    whole = is_table(file) and file.is_file() and importer_for(Path(path)) is None
    rows = _head(file) if whole else []
    names = list(dict.fromkeys(name for row in rows for name in row))[:MOST_COLUMNS]
    known = {name: meaning for meaning, name in meanings(names, {}).items()}
    examples = {name: _examples(rows, name) for name in names}
    for name in names:
        concept = concept_of(name)
        if name not in known and concept not in known.values():
            known[name] = concept
        if not known.get(name) and OF_PARTS.search(name) and all(number(text) is not None for text in examples[name]):
            known[name] = PART
    yield [Column(name=name, examples=examples[name], meaning=known.get(name, "")) for name in names]


def chosen_text(columns: Sequence[Column], chosen: Mapping[str, str]) -> str:
    """Return the chosen meanings of columns as the option ``--columns`` has them, ``my_col=reward,...``.

    Without a completion or its tokens, a table is a log. Meanings of completions that were recognised in its names are
    then left out, but not those that the user chose.

    Args:
        columns: the columns of the table.
        chosen: name -> meaning, empty if the column is not used.
    """
    of_completions = {"completion", "ids"} & {*chosen.values()}
    recognised = {column.name: column.meaning for column in columns}
    return ",".join(
        f"{name}={meaning}"
        for name, meaning in chosen.items()
        if meaning and (of_completions or logged_name(meaning) or meaning != recognised[name])
    )


def key_of(columns: Sequence[Column]) -> str:
    """Return a text that is the same for all tables with columns of these names."""
    return hashlib.sha256(json.dumps(sorted(column.name for column in columns)).encode()).hexdigest()[:32]


def _head(file: Path) -> list[Record]:
    """Return the first rows of a file, as completions if they have text, and as a log with nested numbers."""
    rows = sample(file)
    of_text = any(isinstance(value, str | list) and number(value) is None for row in rows for value in row.values())
    kept = rows if of_text and len(rows) > 1 else []
    with suppress(GrpoError, OSError, ValueError):
        kept = [*kept, *map(dict, rows_of(file, HEAD).rows)]
    objects = {name for row in kept for name, value in row.items() if isinstance(value, dict)}
    return [{name: value for name, value in row.items() if name not in objects} for row in kept]


def _examples(rows: Sequence[Record], name: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for row in rows:
        if row.get(name) not in (None, ""):
            found[shortened(str(row[name]), LONGEST)] = None
        if len(found) == EXAMPLES:
            break
    return tuple(found)
