"""Run files as versions up to 0.3.1 thinned them at a size limit."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from grpo_core.runs.thinning import Stretch, note
from tools.make_example import thin


def thinned(path: Path, *stretches: Stretch) -> None:
    """Drop updates of a closed run file: of each stretch, those that its rule does not keep."""
    with closing(sqlite3.connect(path)) as connection:
        for stretch in stretches:
            thin(connection, stretch)
        note(connection, stretches, stretches[-1].last)
        connection.commit()
