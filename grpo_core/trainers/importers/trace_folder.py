"""The folder that our recorders write: its steps, processes and attempts.

A step is complete when the files of all processes exist. A restarted run writes a new attempt. If two attempts contain
the same optimizer steps, the later one is used and the earlier one is noted.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core.errors import RunFileError
from grpo_core.parsing import object_in
from grpo_core.regular_file import read_limited
from grpo_core.text import plural, tr
from grpo_core.trainers.importers.records import complete_lines
from grpo_core.trainers.importers.text_run import numbered

TRACE, INDEX, LOG = "trace.json", "index.jsonl", "log.jsonl"
FORMAT, VERSION = "grpo-lab-trace", 2
PATIENCE_SECONDS = 60.0
"""Seconds to wait for the files of all processes of a step."""
MOST_PARTS = 100_000
"""Maximum number of optimizer steps of an update, and of micro-batches of a process."""
LONGEST_DESCRIPTION = 4 << 20
"""Maximum size of ``trace.json`` in bytes."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """The part of one step written by one process.

    Attributes:
        path: the file, Parquet or NumPy arrays.
        index: the line of the index that describes it.
    """

    path: Path
    index: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class StepFiles:
    """The files of one step of a trace.

    Attributes:
        attempt: number of the attempt during which it was written, counted from 0.
        last_step: the trainer's number for the optimizer step with which it ends.
        trainer_steps: increment of the trainer's step number: TRL counts optimizer steps, verl updates.
        pieces: rank -> the piece of that process, in order of rank.
        missing: ranks without a piece.
    """

    attempt: int
    last_step: int
    trainer_steps: int
    pieces: dict[int, Piece]
    missing: tuple[int, ...]


def description_of(folder: Path) -> dict[str, Any]:
    """Return the content of ``trace.json``.

    Raises:
        RunFileError: it is missing, not JSON, or of another format or a newer version.
    """
    path = folder / TRACE
    try:
        facts = object_in(read_limited(path, LONGEST_DESCRIPTION))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunFileError(tr("{path} cannot be read: {why}.").format(path=path, why=why)) from None
    if facts is None or facts.get("format") != FORMAT or not isinstance(facts.get("settings"), dict):
        raise RunFileError(tr("{path} is not the description of a recorded run.").format(path=path))
    if not isinstance(facts.get("version"), int) or facts["version"] > VERSION:
        raise RunFileError(
            tr("{path} was written by a newer recorder (version {version}); update GRPO Lab.").format(
                path=path, version=facts.get("version")
            )
        )
    return facts


def steps_of(folder: Path, processes: int) -> tuple[list[StepFiles], list[str]]:
    """Return the steps in the order of training, and notes on what is missing or was written twice."""
    lines: dict[tuple[int, int], dict[int, Piece]] = {}
    notes: list[str] = []
    for rank in range(processes):
        place = folder / f"rank{rank}"
        for attempt, home in numbered(place, "attempt", "") if place.is_dir() else ():
            for line in complete_lines(home / INDEX, notes):
                if _sound(line):
                    lines.setdefault((attempt, line["number"]), {})[rank] = Piece(path=home / line["file"], index=line)
    steps = []
    for (attempt, _), pieces in sorted(lines.items()):
        some = next(iter(pieces.values())).index
        files = StepFiles(
            attempt=attempt,
            last_step=some["global_step"],
            trainer_steps=some.get("trainer_steps", some["passes"]),
            pieces=dict(sorted(pieces.items())),
            missing=tuple(rank for rank in range(processes) if rank not in pieces),
        )
        steps.append(files)
    kept = _without_unfinished(_without_repeated(steps, notes), notes)
    if incomplete := [step for step in kept if step.missing]:
        ranks = sorted({rank for step in incomplete for rank in step.missing})
        notes.append(
            plural(
                "For {count} step, the files of process {ranks} are missing: its loss cannot be compared.",
                "For {count} steps, the files of process {ranks} are missing: their losses cannot be compared.",
                len(incomplete),
            ).format(count=len(incomplete), ranks=", ".join(map(str, ranks)))
        )
    return kept, notes


def _without_unfinished(steps: list[StepFiles], notes: list[str]) -> list[StepFiles]:
    """Remove the steps at the end that are still being written, and note the first.

    A process that has written nothing for :data:`PATIENCE_SECONDS` is assumed to have ended, and its step is shown
    without its part.
    """
    whole = list(steps)
    while whole and whole[-1].missing and time.time() - _written(whole[-1]) < PATIENCE_SECONDS:
        whole.pop()
    if len(whole) < len(steps):
        first = steps[len(whole)]
        notes.append(
            tr("Step {label} is not shown yet: process {ranks} has not written it.").format(
                label=first.last_step, ranks=", ".join(map(str, first.missing))
            )
        )
    return whole


def _written(step: StepFiles) -> float:
    """Return the time at which the last file of a step was written, in seconds, or 0 if unknown."""
    times = [0.0]
    for piece in step.pieces.values():
        with suppress(OSError):
            times.append(piece.path.stat().st_mtime)
    return max(times)


def _sound(line: Any) -> bool:
    """Return whether a line of the index has all required fields and a file name inside the folder."""
    if not isinstance(line, dict) or not all(is_whole(line.get(key)) for key in ("number", "global_step")):
        return False
    if not is_whole(line.get("passes"), MOST_PARTS) or not is_whole(line.get("trainer_steps", 0), MOST_PARTS):
        return False
    name, micro_batches = line.get("file"), line.get("micro_batches")
    if not isinstance(name, str) or Path(name).name != name or not isinstance(micro_batches, list):
        return False
    return all(
        isinstance(one, dict) and is_whole(one.get("pass"), MOST_PARTS) and is_whole(one.get("part"), MOST_PARTS)
        for one in micro_batches
    )


def is_whole(value: Any, most: int = 2**53) -> bool:
    """Return whether a value is an integer from 0 to ``most``."""
    return type(value) is int and 0 <= value <= most


def _without_repeated(steps: list[StepFiles], notes: list[str]) -> list[StepFiles]:
    """Remove the steps that a later attempt trained again, and note their number."""
    restarts: dict[int, int] = {}
    for step in steps:
        restarts.setdefault(step.attempt, step.last_step - step.trainer_steps)
    kept = [
        step
        for step in steps
        if not any(later > step.attempt and start < step.last_step for later, start in restarts.items())
    ]
    if len(kept) < len(steps):
        notes.append(
            plural(
                "The run was restarted: {count} step of earlier attempts was trained again and is left out.",
                "The run was restarted: {count} steps of earlier attempts were trained again and are left out.",
                len(steps) - len(kept),
            ).format(count=len(steps) - len(kept))
        )
    return kept
