"""TRL's ``completions_00012.parquet`` files, written with ``log_completions=True``: text, rewards, advantages."""

from __future__ import annotations

from pathlib import Path

from grpo_core.errors import shortened
from grpo_core.foreign.recording import Completions, file_stamp
from grpo_core.text import tr
from grpo_core.trainers.importers.parquet import Columns, is_written
from grpo_core.trainers.importers.text_run import TextRun, names_in, numbered, recorded_settings
from grpo_core.trainers.importers.trl_table import FIXED, table

BEFORE, AFTER = "completions_", ".parquet"
SUBFOLDER = "completions"
"""Subfolder of the run's output folder in which TRL stores the files."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a TRL completions file, the folder of such files, or the output folder of a run."""
    if path.is_file():
        return bool(numbered(path.parent, [path.name], BEFORE, AFTER))
    return _folder(path) is not None


def _folder(path: Path) -> Path | None:
    for folder in (path, path / SUBFOLDER):
        if numbered(folder, [file.name for file in folder.glob(f"{BEFORE}*{AFTER}")], BEFORE, AFTER):
            return folder
    return None


class TrlCompletions(TextRun):
    """A folder of completions files written by TRL."""

    why_no_step = tr(
        "TRL's table of completions contains texts, rewards and advantages, but no tokens and no log-probabilities, "
        "so there is no loss to recompute; GRPO Lab's recorder (grpo_core/traces/recorders/trl.py, two lines in the "
        "training script) stores them."
    )

    def __init__(self, path: Path) -> None:
        folder = path.parent if path.is_file() else (_folder(path) or path)
        title = folder.parent.name if folder.name == SUBFOLDER else folder.name
        super().__init__(path, title, recorded_settings("TRL"))
        self._folder, self._files = folder, [path] if path.is_file() else []
        self.note(tr("The weights of the reward functions are not in these files; they are assumed to be 1."))
        self.refresh()
        if self._files:
            last = self.last_readable()
            size = int((last.group == 0).sum())
            self.settings = recorded_settings("TRL", names=last.reward_names, group_size=size)

    def refresh(self) -> int:
        names = [self.path.name] if self.path.is_file() else names_in(self._folder)
        files = self.without_unwritten(numbered(self._folder, names, BEFORE, AFTER), is_written)
        self.labels, self._files = [number for number, _ in files], [file for _, file in files]
        return len(files)

    def stamp(self, position: int) -> tuple[int, ...]:
        return file_stamp(self._files[position - 1])

    def completions(self, position: int) -> Completions:
        result = self._table(position)
        self.compare_groups(position, result.group)
        return self.with_repeats_marked(position, result, self._table)

    def _table(self, position: int) -> Completions:
        file = self._files[position - 1]
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
