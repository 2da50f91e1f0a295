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
from grpo_core.trainers.importers import importer_for
from grpo_core.trainers.importers.records import SUFFIXES, sample
from grpo_core.trainers.importers.row_columns import OF_PARTS, PART, meanings
from grpo_core.trainers.importers.scalar_rows import HEAD, number, rows_of
from grpo_core.trainers.run_paths import file_and_run

MOST_COLUMNS, EXAMPLES, LONGEST = 200, 3, 40
"""Maximum numbers of columns, of example values per column, and of characters per value."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: its name, some values, and the meaning by which its name is known, or an empty text."""

    name: str
    examples: tuple[str, ...]
    meaning: str


def is_table(path: Path) -> bool:
    """Return whether the run at ``path`` is in a file whose name is that of a table."""
    return file_and_run(path)[0].suffix.lower() in SUFFIXES


def columns(path: str, *, poll: Callable[[], None]) -> Iterator[list[Column]]:
    """Yield the columns of the table at ``path``, an empty list if it is none or if an importer recognises it."""
    file = file_and_run(Path(path))[0]
    values = _head(file) if is_table(file) and file.is_file() and importer_for(Path(path)) is None else {}
    known = {name: meaning for meaning, name in meanings(values, {}).items()}
    for name, examples in values.items():
        if name not in known and (concept := concept_of(name)) not in known.values():
            known[name] = concept
        if not known.get(name) and OF_PARTS.search(name) and all(number(text) is not None for text in examples):
            known[name] = PART
    yield [Column(name=name, examples=tuple(each), meaning=known.get(name, "")) for name, each in values.items()]


def chosen_text(columns: Sequence[Column], chosen: Mapping[str, str]) -> str:
    """Return chosen meanings (name -> meaning, or empty) as the option ``--columns`` has them, ``my_col=reward,...``.

    Without a completion or its tokens, a table is a log: meanings of completions are left out, unless the user chose
    them for columns with other names.
    """
    of_completions = {"completion", "ids"} & {*chosen.values()}
    recognised = {column.name: column.meaning for column in columns}
    kept = {name: meaning for name, meaning in chosen.items() if of_completions or logged_name(meaning)}
    kept |= {name: meaning for name, meaning in chosen.items() if meaning != recognised[name]}
    return ",".join(f"{name}={meaning}" for name, meaning in kept.items() if meaning)


def key_of(columns: Sequence[Column]) -> str:
    """Return a text that is the same for all tables with columns of these names."""
    return hashlib.sha256(json.dumps(sorted(column.name for column in columns)).encode()).hexdigest()[:32]


def _head(file: Path) -> dict[str, dict[str, None]]:
    """Return some values of each column of a file, read as completions if it has text, and as a log."""
    rows = sample(file)
    of_text = any(isinstance(value, str | list) and number(value) is None for row in rows for value in row.values())
    rows = rows if of_text and len(rows) > 1 else []
    with suppress(GrpoError, OSError, ValueError):
        rows += map(dict, rows_of(file, HEAD).rows)
    found: dict[str, dict[str, None]] = {}
    for name, value in (cell for row in rows for cell in row.items()):
        if not isinstance(value, dict) and (name in found or len(found) < MOST_COLUMNS):
            known = found.setdefault(name, {})
            if value not in (None, "") and len(known) < EXAMPLES:
                known[shortened(str(value), LONGEST)] = None
    return found
