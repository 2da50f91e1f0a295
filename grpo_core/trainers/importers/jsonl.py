"""Reader of JSONL files that another program may still be writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.regular_file import opened_regular
from grpo_core.text import plural, tr

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
