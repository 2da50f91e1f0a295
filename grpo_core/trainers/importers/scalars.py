"""A run of which only what the trainer logged is known: a table with a step, in a file or a folder.

A log beside completions is joined with them as one run, by the trainer's steps.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.trainers.concepts import plain
from grpo_core.trainers.importers.event_file import NAMED
from grpo_core.trainers.importers.records import records
from grpo_core.trainers.importers.scalar_rows import (
    HEAD,
    PRINTED,
    SUFFIXES,
    Reports,
    Rows,
    by_step,
    recognised,
    reports_of,
    rows_of,
)
from grpo_core.trainers.importers.text_run import TextRun, recorded_settings
from grpo_core.trainers.run_paths import file_and_run

STATE = "trainer_state.json"
"""Name of the file in which transformers keeps a trainer's state, with all that it logged."""
MOST_FILES = 500
"""Maximum number of files of a folder that are tried."""
INSIDE = ("", "logs", "metrics", "tensorboard", "runs", "monitors/file")
"""Subfolders of a run's folder in which logs are looked for."""
ALIKE = 1e-5
"""Largest relative difference between two logs of one number: TensorBoard keeps single precision."""
NO_COMPLETIONS = tr("This log contains no completions.")


def probe(path: Path) -> bool:
    """Return whether ``path`` is a log of reinforcement learning, a folder with one, or the name of a run in one."""
    file = file_and_run(path)[0]
    return recognised(file) if file.is_file() else file.is_dir() and next(logs_in(file), None) is not None


class ScalarRun(TextRun):
    """The reports in one log. Of several in a folder or a file, the first or the one named by the path.

    Attributes:
        log: the file, or the folder of checkpoints or event files, that is shown.
    """

    why_no_step = tr(
        "This log contains no tokens and no log-probabilities, so there is no loss to recompute; GRPO Lab's recorder "
        "(two lines in the training script) stores them."
    )

    def __init__(self, path: Path, log: Path | None = None, renamed: Mapping[str, str] | None = None) -> None:
        """Open the log at ``path``, or the one in this folder at ``log``, with columns ``renamed``.

        Raises:
            RunFileError: it cannot be read.
        """
        self._file, self._wanted = file_and_run(path)
        others: list[Path] = []
        self.log = log or self._file
        if log is None and self._file.is_dir():
            found = [*islice(logs_in(self._file), MOST_FILES)]
            if not found:
                raise RunFileError(tr("{name} contains no log with rewards over steps.").format(name=self._file.name))
            self.log, *others = found
            if self.log == self._file:  # the other logs of this run are read with it
                others = [one for one in others if one.is_dir()]
        super().__init__(path, self._wanted or _title(self.log), recorded_settings(""))
        self._numbers, self._renamed = Reports(numbers={}), renamed
        self.refresh()
        self.settings = _settings(self._numbers)
        if self._numbers.runs:
            self.title = self._wanted or self._numbers.runs[-1]
            others = [self._file / name for name in self._numbers.runs if name != self.title]
        self.siblings = tuple(others)
        if self.siblings and not self._wanted:
            self.note(
                plural(
                    "There is {count} more log; “{name}” is shown. The other: {example}.",
                    "There are {count} more logs; “{name}” is shown. Another one: {example}.",
                    len(self.siblings),
                ).format(count=len(self.siblings), name=self.title, example=self.siblings[0])
            )

    def refresh(self) -> int:
        before, self._numbers = self._numbers.notes, read(self.log, self._wanted, self._renamed)
        self.notes = [note for note in self.notes if note not in before]
        self.note(*self._numbers.notes)
        self.labels = list(self._numbers.numbers)
        return len(self.labels)

    def completions(self, position: int) -> Completions:
        raise NotRecordedError(NO_COMPLETIONS)

    def reports(self, position: int) -> Sequence[Report]:
        label, before = self.labels[position - 1], self.labels[position - 2] if position > 1 else 0
        steps = None if self._numbers.counted else label - before
        return [Report(step=label, numbers=self._numbers.numbers[label], steps=steps)]

    def stamp(self, position: int) -> tuple[int, ...]:
        label = self.labels[position - 1]
        return label, zlib.crc32(repr(sorted(self._numbers.numbers[label].items())).encode())


def logs_in(folder: Path) -> Iterator[Path]:
    """Yield the logs in a folder, best first: its own, and then those of the runs in it, the newest first."""
    yield from logs_of(folder)
    if folder.name.startswith("checkpoint-"):
        return
    inside = [one for one in _entries(folder) if one.is_dir() and not one.name.startswith("checkpoint-")]
    known = [(found[0].stat().st_mtime, one) for one in inside if (found := states(one))]
    yield from (one for _, one in sorted(known, reverse=True))
    for one in sorted(inside):
        if one.name not in INSIDE and any(NAMED in file.name and recognised(file) for file in _files(one)):
            yield one


def logs_of(folder: Path) -> Iterator[Path]:
    """Yield the logs of the run in a folder, best first.

    These are the folder itself if it has a trainer's state, folders of event files, and other files.
    """
    if states(folder):
        yield folder
    for place in INSIDE:
        files = sorted(_files(folder / place), key=lambda file: (file.suffix in PRINTED, file.name))
        if any(NAMED in file.name for file in files) and recognised(next(f for f in files if NAMED in f.name)):
            yield folder / place
        for file in files:
            if NAMED not in file.name and file.name != STATE and recognised(file):
                yield file


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(islice(folder.iterdir(), MOST_FILES))
    return []


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder that can be logs. Those of completions are known by their names."""
    return [
        file
        for file in _entries(folder)
        if ((file.suffix and file.suffix.lower() in SUFFIXES) or NAMED in file.name)
        and not file.stem.isdigit()
        and not file.stem.startswith(("completions_", "traces"))
        and file.is_file()
    ]


def states(folder: Path) -> list[Path]:
    """Return the states of a trainer in a folder and its checkpoints, the newest first."""
    numbered: list[tuple[int, Path]] = []
    with suppress(OSError):
        for file in islice(folder.glob("checkpoint-*/" + STATE), 10_000):
            digits = file.parent.name.removeprefix("checkpoint-")
            numbered.append((int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1, file))
    own = [folder / STATE] if (folder / STATE).is_file() else []
    return [*own, *(file for _, file in sorted(numbered, reverse=True))]


def read(log: Path, wanted: str = "", renamed: Mapping[str, str] | None = None) -> Reports:
    """Return the reports in a log: a file, or a folder of checkpoints or event files.

    Raises:
        RunFileError: it cannot be read.
    """
    if not log.is_dir():
        own = renamed and log.suffix.lower() == ".parquet"  # of which rows_of reads nothing under unknown names
        return reports_of(Rows(rows=[*records(log, [])]) if own else rows_of(log), log, wanted, renamed)
    found: Reports | None = None
    for state in states(log):
        with suppress(RunFileError):
            here = reports_of(rows_of(state), state)
            found = here if found is None else merged(found, here, str(state.relative_to(log)))
    if found is not None:
        for beside in (place for place in logs_of(log) if place != log):
            other = read(beside)
            if {*other.numbers} & {*found.numbers}:
                return merged(found, other, beside.name)
        return found
    events = Rows()
    for file in sorted(file for file in _files(log) if NAMED in file.name):
        events.rows += rows_of(file).rows
    return reports_of(by_step(events), log)


def merged(first: Reports, other: Reports, other_name: str) -> Reports:
    """Return reports with the steps and numbers that only another log, ``other_name``, has.

    Where both have a number, that of ``first`` counts, and a note gives the difference.
    """
    numbers = {label: dict(known) for label, known in first.numbers.items()}
    differing: list[tuple[int, str, float, float]] = []
    for label, known in other.numbers.items():
        mine = numbers.setdefault(label, {})
        names = {plain(name): name for name in mine}
        for name, value in known.items():
            if plain(name) not in names:
                mine[name] = value
            elif not math.isclose(value, mine[names[plain(name)]], rel_tol=ALIKE, abs_tol=1e-9) and value == value:
                differing.append((label, name, mine[names[plain(name)]], value))
    notes = list(first.notes)
    if differing:
        label, tag, here, there = differing[0]
        notes.append(
            plural(
                "{count} number in {other} differs from the newest state of the trainer, which counts: at step {step}, "
                "{name} is {here:g} and not {there:g}.",
                "{count} numbers in {other} differ from the newest state of the trainer, which counts: at step {step}, "
                "{name} is {here:g} and not {there:g}.",
                len(differing),
            ).format(count=len(differing), other=other_name, step=label, name=tag, here=here, there=there)
        )
    return Reports(numbers=dict(sorted(numbers.items())), notes=notes)


def _title(log: Path) -> str:
    if log.name == STATE:
        log = log.parent
        return log.parent.name if log.name.startswith("checkpoint-") and log.parent.name else log.name
    return log.name if log.is_dir() else log.stem


def _settings(found: Reports) -> Settings:
    """Return the settings of a run, which are unknown except for the trainer, by the names that it uses."""
    names = {name.removeprefix("train/") for known in islice(found.numbers.values(), HEAD) for name in known}
    kinds = {name.partition("/")[0] for name in names if "/" in name}
    by_kind = {"actor_train": "ROLL", "actor": "verl", "completions": "TRL", "rewards": "TRL"}
    return recorded_settings(next((by_kind[one] for one in by_kind if one in kinds), tr("a trainer's log")))


NOT_HERE = tr("No completions are recorded at this step.")


class Joined(Source):
    """A source of completions with the reports of a log beside it."""

    def __init__(self, rows: Source, log: ScalarRun) -> None:
        self._rows, self._log = rows, log
        self.settings, self.processes = rows.settings, rows.processes
        self.path, self.title, self.siblings = rows.path, rows.title, rows.siblings
        self._place()

    def _place(self) -> None:
        rows = self._rows
        self.partial, self.has_losses, self.why_no_losses = rows.partial, rows.has_losses, rows.why_no_losses
        self.labels = sorted({*self._rows.labels, *self._log.labels})
        self._at_rows = {label: position for position, label in enumerate(self._rows.labels, 1)}
        self._at_log = {label: position for position, label in enumerate(self._log.labels, 1)}

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override]
        joined = tr("The trainer's reports are those of {name}.").format(name=self._log.log.name)
        return [*self._rows.notes, joined, *self._log.notes]

    def refresh(self) -> int:
        self._rows.refresh()
        self._log.refresh()
        self._place()
        return len(self)

    def _at(self, position: int) -> tuple[int | None, int | None]:
        """Return the position of an update among the completions and that in the log, None where it is missing."""
        label = self.labels[position - 1]
        return self._at_rows.get(label), self._at_log.get(label)

    def _position(self, position: int) -> int:
        if (found := self._at(position)[0]) is None:
            raise NotRecordedError(NOT_HERE)
        return found

    def step(self, position: int) -> Step:
        return self._rows.step(self._position(position))

    def completions(self, position: int) -> Completions:
        return self._rows.completions(self._position(position))

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        found = self._at(position)[0]
        return (None, None) if found is None else self._rows.measured(found)

    def losses(self, position: int) -> np.ndarray | None:
        return self._rows.losses(self._position(position))

    def incomplete(self, position: int) -> str:
        found = self._at(position)[0]
        return NOT_HERE if found is None else self._rows.incomplete(found)

    def reports(self, position: int) -> Sequence[Report]:
        rows, log = self._at(position)
        own = [] if rows is None else self._rows.reports(rows)
        return [*(own if log is None else self._log.reports(log))]

    def stamp(self, position: int) -> tuple[int, ...]:
        rows, log = self._at(position)
        return (*(() if rows is None else self._rows.stamp(rows)), *(() if log is None else self._log.stamp(log)))


def with_log(rows: Source, folder: Path) -> Source:
    """Return a source of completions, joined with the trainer's log in its folder if that has steps in common."""
    place = next(logs_of(folder), None)
    if place is None:
        return rows
    try:
        log = ScalarRun(folder, place)
    except RunFileError:
        return rows
    return Joined(rows, log) if {*log.labels} & {*rows.labels} else rows
