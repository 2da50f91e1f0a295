"""TRL's ``completions_00012.parquet`` files, written with ``log_completions=True``: text, rewards, advantages."""

from __future__ import annotations

from pathlib import Path

from grpo_core.errors import shortened
from grpo_core.foreign.recording import Completions
from grpo_core.text import tr
from grpo_core.trainers.importers.parquet import Columns, is_written
from grpo_core.trainers.importers.text_run import TextRun, numbered_at, recorded_settings
from grpo_core.trainers.importers.trl_table import FIXED, table

BEFORE, AFTER = "completions_", ".parquet"
SUBFOLDER = "completions"
"""Subfolder of the run's output folder in which TRL stores the files."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a TRL completions file, the folder of such files, or the output folder of a run."""
    return _place(path) is not None


def _place(path: Path) -> Path | None:
    return next((place for place in (path, path / SUBFOLDER) if numbered_at(place, BEFORE, AFTER)), None)


class TrlCompletions(TextRun):
    """A folder of completions files written by TRL."""

    why_no_step = tr(
        "TRL's table of completions contains texts, rewards and advantages, but no tokens and no log-probabilities, "
        "so there is no loss to recompute; GRPO Lab's recorder (grpo_core/traces/recorders/trl.py, two lines in the "
        "training script) stores them."
    )

    def __init__(self, path: Path) -> None:
        self._place = _place(path) or path
        folder = self._place.parent if self._place.is_file() else self._place
        title = folder.parent.name if folder.name == SUBFOLDER else folder.name
        super().__init__(path, title, recorded_settings("TRL"))
        self.note(tr("The weights of the reward functions are not in these files; they are assumed to be 1."))
        self.refresh()
        if self.labels:
            last = self.last_readable()
            size = int((last.group == 0).sum())
            self.settings = recorded_settings("TRL", names=last.reward_names, group_size=size)

    def refresh(self) -> int:
        return self.take_files(self._place, BEFORE, AFTER, is_written)

    def table(self, position: int) -> Completions:
        file = self.files[self.labels[position - 1]]
        columns = Columns(file)
        result = table({name: columns.values(name) for name in columns.names}, file.name)
        others = [name for name in columns.names if name not in FIXED]
        if not result.reward_names and others:
            self.note(
                tr(
                    "No column of {file} can be a reward: TRL writes a column of numbers with decimals for each "
                    "reward function, and there is none among {names}."
                ).format(file=file.name, names=shortened(", ".join(others)))
            )
        return result
