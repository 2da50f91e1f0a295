"""Session files, opened as in a window that starts no process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grpo_core.foreign.readers import Readers
from grpo_core.runs.manifest import Manifest
from grpo_core.runs.session import checked, reading


def open_session(
    path: Path, folder: Path, poll: Callable[..., None] = lambda *fraction: None
) -> tuple[Manifest, tuple[Path, ...]]:
    """Copy the runs of a session to ``folder``."""
    return Readers(own_process=False).session(path, folder, poll)


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a session file, whose entries are checked."""
    with reading(path) as archive:
        return checked(path, archive)
