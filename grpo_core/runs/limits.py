"""Limits on the size of a run file. A file that declares more is rejected before memory is allocated for it.

Each limit is far above what the program writes, and the writer stops before it reaches one.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from grpo_core.text import plural, tr

MOST_UPDATES = 100_000_000
"""Maximum number of updates of a run. Reaching it takes a day at over a thousand updates per second."""
MOST_META_ROWS = 100
LONGEST_META = 16_000_000
"""Maximum number of characters of one value of the table ``meta``. The longest value holds a vocabulary and prompts."""
LONGEST_TITLE = 1000
"""Maximum number of characters of a title. The title of a nested branch includes those of its ancestors."""
MOST_CHANGES = 10_000
"""Maximum number of changes to the settings."""
LONGEST_SETTINGS = 1_000_000
"""Maximum number of characters of the settings as JSON. A landscape of a thousand rewards takes twenty thousand."""
LONGEST_LAYOUT = 1_000_000
"""Maximum number of characters of a record's description."""
MOST_ARRAYS = 1000
"""Maximum number of arrays in a record, including measurements."""
MOST_AXES = 8
LONGEST_AXIS = 2**31
MOST_SERIES = 1000
LONGEST_SERIES_NAME = 200
LONGEST_ANSWER = 64_000_000
"""Maximum number of characters of the model's answer to a question, as JSON."""
MOST_STRETCHES = 100
"""Maximum number of stretches of thinned updates. Thinning creates at most three at a time."""
MOST_ANCESTORS = 200
"""Maximum number of ancestors of a branch."""


NEARLY_FULL = 100_000_000
"""Minimum number of free bytes on the disk. Below it, a run is paused."""


def why_full(path: Path, *, updates: int, changes: int, limit: int, below_limit: bool) -> str | None:
    """Return why no further update should be computed, as a sentence. None if another one can be computed.

    Args:
        limit: size in bytes at which the run is paused.
    """
    if updates >= MOST_UPDATES:
        return plural(
            "{name} has reached the limit of {most:,} update for a run; continue in a new run.",
            "{name} has reached the limit of {most:,} updates for a run; continue in a new run.",
            MOST_UPDATES,
        ).format(name=path.name, most=MOST_UPDATES)
    if changes >= MOST_CHANGES:
        return plural(
            "The settings of {name} have changed {most:,} time, the limit for a run; branch from it.",
            "The settings of {name} have changed {most:,} times, the limit for a run; branch from it.",
            MOST_CHANGES,
        ).format(name=path.name, most=MOST_CHANGES)
    if not below_limit:
        return tr(
            "{name} has reached its size limit of {limit:g} GB; raise the limit, or continue in a new run."
        ).format(name=path.name, limit=limit / 1e9)
    with suppress(OSError):
        free = shutil.disk_usage(path.parent).free
        if free < NEARLY_FULL:
            return tr("The disk is nearly full: {free:.0f} MB are left. Free some space to continue.").format(
                free=free / 1e6
            )
    return None
