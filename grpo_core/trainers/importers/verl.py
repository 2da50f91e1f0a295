"""Reader of verl's ``rollout_data_dir/12.jsonl``: one line per completion, with its text and score.

Based on the source code of verl 0.9.1. The current trainer writes ``input, output, gts, score, step, uid`` with the uid
``{sample}_{rollout}_{output}``. The previous one writes ``input, output, gts, score, step``, numbers added by the
reward function, and ``request_id``, in the order in which the rows were distributed to balance the processes. A trace
of our recorder, which has the tokens, is read by ``trace.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Completions
from grpo_core.text import plural, tr
from grpo_core.trainers.importers.records import Record, complete_lines, limited
from grpo_core.trainers.importers.text_run import TextRun, answers_in, equal_groups, numbered, recorded_settings

AFTER = ".jsonl"
COLUMNS = frozenset({"input", "output", "score"})
MOST_TRIED = 20
"""Maximum number of files in a folder that are tested for verl's format."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a file of verl's rollouts, or a folder of them."""
    files = numbered(path, "", AFTER) if path.exists() else []
    return any(_first_line_fits(file) for _, file in files[:MOST_TRIED])  # the first ones may be empty


def _first_line_fits(path: Path) -> bool:
    first = next(iter(complete_lines(path, [], note_torn=True)), None)
    return isinstance(first, dict) and first.keys() >= COLUMNS


class VerlRollouts(TextRun):
    """A folder of verl's rollouts, or a single file from such a folder."""

    why_no_step = tr(
        "verl's rollout files contain texts and scores, but no tokens, log-probabilities or advantages, so there is "
        "no loss to recompute. verl has those only in memory; GRPO Lab's recorder "
        "(grpo_core/traces/recorders/verl.py, a variable and a setting of the training command) stores them."
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path, path.stem if path.is_file() else path.name, recorded_settings("verl"))
        self.refresh()
        if self.labels:
            group = self.completions(len(self)).group
            size = int((group == 0).sum()) if len(group) else 1
            self.settings = recorded_settings("verl", group_size=size)

    def refresh(self) -> int:
        return self.take_files(self.path, "", AFTER, _first_line_fits)

    def completions(self, position: int) -> Completions:
        file = self.files[self.labels[position - 1]]
        rows = self._rows(file)
        if not rows:
            raise RunFileError(tr("{name} contains no readable completion.").format(name=file.name))
        keys = [_group_key(row) for row in rows]
        group = equal_groups(keys)
        if any(kind == "input" for kind, _ in keys):
            self.note(
                tr("These files do not name groups: completions of the same prompt in a file are assumed to form one.")
            )
        self.compare_groups(position, group)
        rewards = np.array([_number(row["score"]) for row in rows])
        strange = sum(row["score"] is not None and not isinstance(row["score"], int | float) for row in rows)
        if strange:
            self.note(
                plural(
                    "The score of {count} completion of {name} is not a number: it counts as unscored.",
                    "The score of {count} completions of {name} is not a number: they count as unscored.",
                    strange,
                ).format(count=strange, name=file.name)
            )
        return Completions(
            prompts=tuple(str(row["input"]) for row in rows),
            completions=tuple(str(row["output"]) for row in rows),
            group=group,
            rewards=rewards,
            answers=answers_in(rows),
        )

    def _rows(self, file: Path) -> list[dict[str, Any]]:
        notes: list[str] = []
        strange = 0

        def completions() -> Iterator[Record]:
            nonlocal strange
            for row in complete_lines(file, notes, note_torn=True):
                if isinstance(row, dict) and row.keys() >= COLUMNS:
                    yield row
                else:
                    strange += 1

        rows = list(limited(completions(), file, notes))
        if strange:
            notes.append(
                plural(
                    "{count} line of {name} is not a completion and is left out.",
                    "{count} lines of {name} are not completions and are left out.",
                    strange,
                ).format(count=strange, name=file.name)
            )
        self.note(*notes)
        return rows


def _group_key(row: dict[str, Any]) -> tuple[str, str]:
    """Return the key shared by the completions of one prompt: their uid without its last two parts, or the prompt."""
    uid = row.get("uid")
    if isinstance(uid, str) and uid.count("_") >= 2:
        return "uid", uid.rsplit("_", 2)[0]
    return "input", str(row["input"])


def _number(value: Any) -> float:
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:  # an integer of hundreds of digits
        return math.nan
