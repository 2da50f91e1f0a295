"""Files that keep all weights of a large model beside a run file: an update's ``resume`` names a file instead."""

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
    """The ``resume`` of an update whose weights are in the file at ``path``."""
    return {NAME: np.frombuffer(str(path.absolute()).encode(), np.uint8).copy()}


def named_file(resume: Mapping[str, np.ndarray]) -> Path | None:
    """The file that ``resume`` names. None where it names none, or none that is there."""
    if NAME not in resume:
        return None
    path = Path(resume[NAME].astype(np.uint8).tobytes().decode("utf-8", "replace"))
    try:
        return path if _FILE.fullmatch(path.name) and path.is_file() else None
    except (OSError, ValueError):
        return None


def holds_weights(step: Step) -> bool:
    """Whether a run can go on from ``step`` without learning it again: its weights are in the run file, or in a file
    that is still there."""
    return bool(step.resume) and (NAME not in step.resume or named_file(step.resume) is not None)
