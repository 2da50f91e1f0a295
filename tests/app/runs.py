"""Run files of bandits, which are trained in the thread that asks."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.runs.run_file import RunWriter


def a_run(path: Path, updates: int = 3, title: str = "") -> Path:
    """Write a run file, whose title is by default the file's name."""
    with RunWriter.create(path, Settings(), title=title or path.stem) as writer:
        for step in islice(learner(Settings()), updates):
            writer.append(step)
    return path
