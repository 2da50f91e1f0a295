"""Files of one JSON value a line, as another program writes them while they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.regular_file import opened_regular
from grpo_core.text import tr

LONGEST_LINE = 64 << 20
"""Bytes of one line at most."""
NOTED = 10
"""Lines that are not JSON of which each is noted."""
MOST_BAD = 100_000
"""Lines that are not JSON after which a file is none of such lines."""


@dataclass
class Place:
    """Behind a line of a file: so many bytes and lines from its beginning."""

    byte: int = 0
    lines: int = 0


def complete_lines(path: Path, notes: list[str], *, note_torn: bool = False) -> Iterator[Any]:
    """The values of the complete lines of ``path``. Nothing where there is no such file.

    A last line without its end is being written, or was torn, and is left out; what cannot be read is noted in a
    sentence.

    Args:
        path: of the file.
        notes: where the sentences go.
        note_torn: also take a last line without its end where it is whole JSON, and note it where it is not.
    """
    for _, value in placed_lines(path, notes, note_torn=note_torn):
        yield value


def placed_lines(
    path: Path, notes: list[str], *, note_torn: bool = False, at: Place | None = None,
    parse: Callable[[bytes], Any] = json.loads,
) -> Iterator[tuple[int, Any]]:  # fmt: skip
    """As :func:`complete_lines`, each value with the byte at which its line begins.

    Args:
        path: of the file.
        notes: where the sentences go.
        note_torn: as there.
        at: where to begin; moved behind each line that has its end.
        parse: the value of a line; raises ValueError where it is no JSON.
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
                    else tr("Line {number}, the last of {name}, is torn or still being written and is left out.")
                )
                notes.append(sentence.format(number=number, name=path.name))
        if bad > MOST_BAD:
            notes.append(
                tr("More than {most:,} lines of {name} are not JSON; the rest is left out.").format(
                    most=MOST_BAD, name=path.name
                )
            )
        elif bad > NOTED:
            notes.append(
                tr("{count:,} more lines of {name} are not JSON and are left out.").format(
                    count=bad - NOTED, name=path.name
                )
            )
