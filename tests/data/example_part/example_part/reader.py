"""A reader of runs as lines of JSON: {"example": 1, "step": 1, "prompt": "…", "answer": "…", "reward": 0.5}."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Completions, file_stamp
from grpo_core.trainers.importers import Importer
from grpo_core.trainers.importers.text_run import TextRun, equal_groups, recorded_settings

LONGEST, MOST = 100_000, 100_000
"""Largest number of characters of a line, and of lines of a file, that are read."""


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the complete rows of a file, and stop at the first line of another form."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for _ in range(MOST):
            try:
                row = json.loads(file.readline(LONGEST))
                fields = {"step": int(row["step"]), "reward": float(row["reward"])}
                yield {**fields, "prompt": str(row["prompt"]), "answer": str(row["answer"]), "version": row["example"]}
            except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
                return


def probe(path: Path) -> bool:
    """Return whether the first line of a file is a row of this format."""
    return path.is_file() and path.suffix == ".jsonl" and any(islice(rows_of(path), 1))


class ExampleRun(TextRun):
    """A run in this format."""

    why_no_step = "This format contains texts and rewards, but no tokens, so there is no loss to recompute."

    def __init__(self, path: Path) -> None:
        super().__init__(path, path.stem, recorded_settings("the example's trainer"))
        self.refresh()

    def refresh(self) -> int:
        """Read the numbers of the steps."""
        self.labels = sorted({row["step"] for row in rows_of(self.path)})
        if not self.labels:
            raise RunFileError(f"{self.path.name} contains no complete row.")
        return len(self.labels)

    def completions(self, position: int) -> Completions:
        """Return the completions of one step."""
        rows = [row for row in rows_of(self.path) if row["step"] == self.labels[position - 1]]
        return Completions(
            prompts=tuple(row["prompt"] for row in rows),
            completions=tuple(row["answer"] for row in rows),
            group=equal_groups([row["prompt"] for row in rows]),
            rewards=np.array([row["reward"] for row in rows]),
        )

    def stamp(self, position: int) -> tuple[int, ...]:
        """Return integers that change with the file."""
        return file_stamp(self.path)


READER = Importer(title="a run of the example's trainer (.jsonl)", probe=probe, open=ExampleRun)
