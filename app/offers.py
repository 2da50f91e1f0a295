"""What a start offers in a bar, never in a dialog: the run that a crash interrupted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from app.crash.report_bar import BarAction, Message, Severity
from grpo_core.runs import library
from grpo_core.text import tr


def unfinished(folder: Path, shown: Collection[Path], open_path: Callable[[Path], None]) -> Message | None:
    """An offer to open the newest run of ``folder`` that nobody closed; None where there is none, or it is shown."""
    for entry in library.entries(folder):
        if entry.meta is not None and not entry.meta.ended and not entry.in_use and entry.steps:
            if entry.path in shown:
                return None
            text = tr(
                "The program ended unexpectedly the last time. “{title}” was being written then; "
                "its {steps:,} updates are safe."
            ).format(title=entry.meta.title, steps=entry.steps)
            action = BarAction(text=tr("Open it"), run=partial(open_path, entry.path))
            return Message(text=text, severity=Severity.INFO, actions=(action,), id="unfinished")
    return None
