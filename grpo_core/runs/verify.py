"""Verification of a run file: every row is compared with its checksum, and every update is decoded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.runs import checks
from grpo_core.runs.database import CHUNK, VERSION, RunConnection, explained, opened, transaction
from grpo_core.runs.files import size_of
from grpo_core.runs.meta import all_rows
from grpo_core.runs.reader import RunReader
from grpo_core.runs.series import count_values
from grpo_core.text import plural, tr

TOLD = 20
"""Maximum number of damaged updates that are named."""
_WORDS = {
    "settings": tr("settings"),
    "layout": tr("descriptions of records"),
    "text": tr("texts"),
    "answer": tr("answers of the model"),
    "note": tr("notes"),
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """Verification result for one kind of content of a run file.

    Attributes:
        damaged: one message for each damaged item, or a single one for all.
        unchecked: number of items without a checksum, as in files of earlier versions.
    """

    what: str
    count: int
    damaged: tuple[str, ...] = ()
    unchecked: int = 0


def verified(path: Path, poll: Callable[[int, int], None] = lambda done, count: None) -> list[Part]:
    """Verify every part of the run file at ``path``.

    Args:
        poll: called after each update with the number done and the total; may raise to stop.

    Raises:
        RunFileError: it cannot be opened at all.
    """
    with RunReader.open(path) as reader, closing(opened(path)) as connection:
        parts = [_structure(path, connection), *_updates(reader, poll)]
        with explained(path), transaction(connection, "DEFERRED"):
            rows = all_rows(connection)
            there = checks.covered(rows)
            for table, words in _WORDS.items():
                count = connection.execute("SELECT count(*) FROM " + table).fetchone()[0]
                bad = checks.is_damaged(connection, rows, table)
                said = tr("The {what} contain bytes that were not written by GRPO Lab.").format(what=words)
                unchecked = 0 if table in there else count
                parts.append(Part(what=words, count=count, damaged=(said,) if bad else (), unchecked=unchecked))
            names = reader.series_names
            most = size_of(path) // (8 * CHUNK)
            values, bad_values, unchecked = count_values(connection, names, last=reader.last, most=most)
    said = plural(
        "{count} value is not the one that was written. It is recomputed when it is shown.",
        "{count} values are not those that were written. They are recomputed when they are shown.",
        bad_values,
    )
    parts.append(
        Part(
            what=tr("values of the series"),
            count=values,
            unchecked=unchecked,
            damaged=(said.format(count=bad_values),) if bad_values else (),
        )
    )
    return parts


def _structure(path: Path, connection: RunConnection) -> Part:
    try:
        with explained(path):
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
    except RunFileError as error:
        return Part(what=tr("pages"), count=0, damaged=(str(error),))
    if connection.newer:
        said = tr("The file has format {version}. This program knows format {known} and cannot verify a newer one.")
        found.append(said.format(version=version, known=VERSION))
    return Part(what=tr("pages"), count=pages, damaged=tuple(said for said in found if said != "ok"))


def _updates(reader: RunReader, poll: Callable[[int, int], None]) -> list[Part]:
    """Verify the run's start, the branch point if there is one, and every update of this file."""
    damaged, count = list[str](), 0
    try:
        _ = reader.origin
    except RunFileError as error:
        damaged.append(str(error))
    start = Part(what=tr("start of the run"), count=1, damaged=tuple(damaged))
    damaged, first = [], reader.first - (reader.first > 1)
    number: int | None = first if reader.first > 1 else reader.kept(first, forwards=True)
    while number is not None and number <= reader.last:
        poll(number - first + 1, reader.last - first + 1)
        try:
            count += 1
            reader.step(number)
        except NotRecordedError:  # imported without tokens: the record is empty, and its text is checked below
            pass
        except RunFileError as error:
            damaged.append(str(error))
        number = number + 1 if not reader.thinned else reader.kept(number + 1, forwards=True)
    more = len(damaged) - TOLD
    told = [*damaged[:TOLD], *([tr("and {count} more.").format(count=more)] if more > 0 else [])]
    return [start, Part(what=tr("updates"), count=count, damaged=tuple(told))]
