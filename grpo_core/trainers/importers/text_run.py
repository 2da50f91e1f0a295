"""Base class of sources that only contain text and rewards, with groups inferred from the order of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.config import Learner, Objective, Settings
from grpo_core.config.recorded import RecordedTask
from grpo_core.errors import NotRecordedError, RunFileError, SettingsError
from grpo_core.foreign.recording import Completions, Source, file_stamp
from grpo_core.record import Step
from grpo_core.text import plural, tr

LARGEST_GROUP = 4096
"""Maximum number of completions of a group, as in the settings of a learner."""
ANSWERS = ("gts", "ground_truth", "answer", "final_answer", "expected_answer", "correct_answer", "solution", "target")
"""Names of columns with the right answer to a prompt. The first that has one counts."""


def answers_in(rows: Sequence[Mapping[str, Any]]) -> tuple[str | None, ...] | None:
    """Return the right answer to the prompt of each row. None if no row has one."""
    known = [[str(row[n]) for n in ANSWERS if isinstance(row.get(n), str | int | float)] for row in rows]
    return tuple(next(iter(each), None) for each in known) if any(known) else None


class TextRun(Source):
    """A source of completions without tokens.

    Subclasses for each format implement :meth:`table`.

    Attributes:
        why_no_step: message about what is missing for a step and how to get it, for formats that never have one.
        files: the file of each update, by the trainer's number, if each update has its own.
    """

    why_no_step: str

    def __init__(self, path: Path, title: str, settings: Settings) -> None:
        self.path, self.title, self.settings = path, title, settings
        self.notes: list[str] = []
        self.labels: list[int] = []
        self.files: dict[int, Path] = {}
        self._unwritten = ""
        self._usual_group: int | None = None
        self._digests: dict[int, bytes] = {}

    def step(self, position: int) -> Step:
        raise NotRecordedError(self.why_no_step)

    def table(self, position: int) -> Completions:
        """Return the completions of the update at ``position``, without a comparison with other updates."""
        raise NotImplementedError

    def completions(self, position: int) -> Completions:
        table = self.table(position)
        self.compare_groups(position, table.group)
        return self._with_repeats_marked(position, table)

    def last_readable(self) -> Completions:
        """Return the completions of the last update that can be read, from which a format infers its settings.

        Raises:
            RunFileError: none can be read; the message is about the first.
        """
        for position in range(len(self), 1, -1):
            with suppress(RunFileError):
                return self.completions(position)
        return self.completions(1)

    def stamp(self, position: int) -> tuple[int, ...]:
        return file_stamp(self.files[self.labels[position - 1]])

    def note(self, *sentences: str) -> None:
        self.notes += [each for each in dict.fromkeys(sentences) if each not in self.notes]

    def take_files(self, at: Path, before: str, after: str, is_written: Callable[[Path], bool]) -> int:
        """Take over the numbered files of the run, and return their number.

        Incomplete ones at the end are left out, of which the first is noted. If no file is complete, all are taken, so
        that reading them raises the error.

        Args:
            at: their folder, or the only file.
            before, after: the parts of each file's name before and after the number.
            is_written: function that returns whether a file is complete.

        Raises:
            RunFileError: the folder cannot be read.
        """
        files = numbered(at, before, after)
        kept = list(files)
        while kept and not is_written(kept[-1][1]):
            kept.pop()
        self.notes = [note for note in self.notes if note != self._unwritten]
        self._unwritten = ""
        if kept and len(kept) < len(files):
            self._unwritten = tr("{name} is incomplete or still being written, and is left out.").format(
                name=files[len(kept)][1].name
            )
            self.note(self._unwritten)
        self.files = dict(kept or files)
        self.labels = list(self.files)
        return len(self.labels)

    def _with_repeats_marked(self, position: int, table: Completions) -> Completions:
        """Mark and note the completions of an update if they are text that repeats the previous update's."""
        if not any(table.completions):
            return table
        digest = self._digests[position] = _digest(table)
        if position > 1 and position - 1 not in self._digests:
            with suppress(RunFileError, NotRecordedError):
                self._digests[position - 1] = _digest(self.table(position - 1))
        if digest != self._digests.get(position - 1):
            return table
        self.note(
            tr(
                "Some steps repeat the completions of the step before them: one generation served several steps, and "
                "totals over steps count it once."
            )
        )
        return replace(table, repeated=True)

    def compare_groups(self, position: int, group: np.ndarray) -> None:
        """Note an update whose group size differs from that of the first update that was read."""
        sizes = np.bincount(group)
        usual = int(np.bincount(sizes).argmax()) if len(sizes) else 0
        if self._usual_group is None:
            self._usual_group = usual
        elif usual != self._usual_group:
            self.note(
                plural(
                    "Step {label} has groups of {size} completion, while others have {usual}: perhaps an evaluation "
                    "overwrote it.",
                    "Step {label} has groups of {size} completions, while others have {usual}: perhaps an evaluation "
                    "overwrote it.",
                    usual,
                ).format(label=self.labels[position - 1], size=usual, usual=self._usual_group)
            )


def _digest(table: Completions) -> bytes:
    return hashlib.sha256(repr((table.prompts, table.completions)).encode("utf-8", "replace")).digest()


def recorded_settings(
    source: str,
    *,
    names: Sequence[str] = (),
    weights: Sequence[float] = (),
    group_size: int | None = None,
    objective: Objective | None = None,
    max_tokens: int | None = None,
    trainer_settings: str = "",
    learner: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings of a run as far as its source records them. If the loss is not recorded, it has no KL term.

    Args:
        source: the program that trained.
        names: names of the reward functions.
        group_size: completions per prompt, if known.
        objective: the loss, if known.
        max_tokens: maximum number of tokens of a completion.
        trainer_settings: the trainer's own settings, as JSON.
        learner: known fields of :class:`Learner`.
    """
    known = {name: value for name, value in (learner or {}).items() if _is_possible(name, value)}
    if group_size is not None:
        known["group_size"] = min(max(group_size, 1), LARGEST_GROUP)
    task = RecordedTask(
        source=source,
        reward_names=tuple(names),
        reward_weights=tuple(weights),
        max_tokens=max_tokens,
        trainer_settings=trainer_settings,
    )
    return Settings(objective=objective or Objective(beta=0.0), learner=Learner(**known), task=task)


def _is_possible(name: str, value: Any) -> bool:
    try:
        Learner(**{name: value})
    except SettingsError:
        return False
    return True


def consecutive_groups(keys: Sequence[Hashable], size: int | None = None) -> np.ndarray:
    """Return groups (B,) of consecutive rows with equal prompts, at most ``size`` rows per group."""
    group = np.zeros(len(keys), np.int64)
    members = 1
    for i in range(1, len(keys)):
        fresh = keys[i] != keys[i - 1] or members == size
        group[i] = group[i - 1] + fresh
        members = 1 if fresh else members + 1
    return group


def equal_groups(keys: Sequence[Hashable]) -> np.ndarray:
    """Return groups (B,) of rows with equal keys in any order, numbered by first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def numbered(path: Path, before: str, after: str) -> list[tuple[int, Path]]:
    """Return (number, file) for the files in a folder named ``before`` + number + ``after``, ordered by number, or for
    ``path`` itself if it is such a file.

    Raises:
        RunFileError: the folder cannot be read.
    """
    try:
        found = [*path.iterdir()] if path.is_dir() or not path.exists() else [path]
    except OSError as error:
        raise RunFileError(tr("{path} cannot be read: {why}.").format(path=path, why=error.strerror)) from None
    files = []
    for file in found:
        middle = file.name[len(before) : len(file.name) - len(after)]
        fits = file.name.startswith(before) and file.name.endswith(after) and middle.isascii() and middle.isdigit()
        if fits and len(middle) <= 18:
            files.append((int(middle), file))
    return sorted(files)


def whole(value: Any) -> int | None:
    """Return a setting that is a positive whole number. None if it is anything else."""
    return value if type(value) is int and 1 <= value <= 10**9 else None
