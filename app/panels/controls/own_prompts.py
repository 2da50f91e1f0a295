"""The user's own prompts as a task, which requires a file of prompts."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QWidget

from app.theme.file_dialogs import file_to_open
from grpo_core.config import Settings
from grpo_core.text import tr

OWN: tuple[dict[str, Any], ...] = ({"task.problem": "own"}, {"task.problem": "questions"})
"""Changes that select the user's own prompts."""
PROMPTS = tr("Prompts and answers (*.csv *.json *.jsonl *.parquet);;All files (*)")


def with_prompt_file(changes: dict[str, Any], wanted: Settings, parent: QWidget) -> dict[str, Any]:
    """Return ``changes``, with a file added if they select the user's own prompts and none is set.

    The result is empty if the user chooses no file.
    """
    if changes not in OWN or wanted.language.file:
        return changes
    name = file_to_open(parent, tr("Your prompts and answers"), "", PROMPTS)
    return {**wanted.changes_for_prompts(name), **changes} if name else {}
