"""Files of one JSON value a line, as another program writes them while they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grpo_core.text import tr

LONGEST_LINE = 64 << 20
"""Bytes of one line at most."""


def complete_lines(path: Path, notes: list[str]) -> Iterator[Any]:
    """The values of the complete lines of ``path``; nothing where there is no such file.

    A last line without its end is being written, or was torn, and is left out; what cannot be read is noted in a
    sentence.
    """
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if not line.endswith(b"\n"):
                if len(line) == LONGEST_LINE:
                    notes.append(
                        tr("Line {number} of {name} is longer than {most:,} bytes; reading stops there.").format(
                            number=number, name=path.name, most=LONGEST_LINE
                        )
                    )
                return
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                notes.append(
                    tr("Line {number} of {name} is not JSON and is left out.").format(number=number, name=path.name)
                )
