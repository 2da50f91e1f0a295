"""Errors about models from folders: the error for unusable files, and the message about missing libraries."""

from __future__ import annotations

import sys
from pathlib import Path

from grpo_core.errors import SettingsError
from grpo_core.text import tr

NO_TRANSFORMERS = (
    tr(
        "A model from a folder needs transformers and peft, which this download does not contain. Choose a Python that "
        "has them (Run, Python with torch…, or --python PATH). The shipped model works without them."
    )
    if getattr(sys, "frozen", False)
    else tr(
        "A model from a folder needs transformers and peft, which are not installed. Install them with “make run-hf” "
        "in the source folder, or with “pip install torch transformers peft gguf”; the shipped model works without "
        "them."
    )
)


def refuse(path: Path, reason: str) -> SettingsError:
    """Create the error that says why the model at ``path`` cannot be used, and what to do instead."""
    return SettingsError("model.folder", str(path), reason)
