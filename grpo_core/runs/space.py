"""Check whether a run file can store another update, given its limits and the free space on the disk."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from grpo_core.runs.limits import MOST_CHANGES, MOST_UPDATES
from grpo_core.text import plural, tr

NEARLY_FULL = 100_000_000
"""Minimum number of free bytes on the disk. Below it, a run is paused."""


def why_full(path: Path, *, updates: int, changes: int, limit: int, below_limit: bool) -> str | None:
    """Return why no further update should be computed, as a sentence. None if another one can be computed.

    Args:
        path: path of the run file.
        updates: number of updates that it holds.
        changes: number of changes to its settings.
        limit: size in bytes at which the run is paused.
        below_limit: whether the file is smaller than that.
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
