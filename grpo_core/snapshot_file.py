"""Files next to a run file that contain all weights of a large model. An update's ``resume`` then names the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from grpo_core.record import Step

NAME = "snapshot_file"
"""Entry of :attr:`grpo_core.record.Step.resume`: the path of the file as UTF-8."""
_FILE = re.compile(r"[0-9a-f]{32}\.safetensors")


def entry(path: Path) -> dict[str, np.ndarray]:
    """Return the ``resume`` of an update whose weights are in the file at ``path``."""
    return {NAME: np.frombuffer(str(path.absolute()).encode(), np.uint8).copy()}


def named_file(resume: Mapping[str, np.ndarray]) -> Path | None:
    """Return the file that ``resume`` names, or None if it names none or the file is missing."""
    if NAME not in resume:
        return None
    path = Path(resume[NAME].astype(np.uint8).tobytes().decode("utf-8", "replace"))
    try:
        return path if _FILE.fullmatch(path.name) and path.is_file() else None
    except (OSError, ValueError):
        return None


def holds_weights(step: Step) -> bool:
    """Return whether a run can continue from ``step`` without replaying it, because its weights are in the run file or
    in an existing file next to it.
    """
    return bool(step.resume) and (NAME not in step.resume or named_file(step.resume) is not None)
