"""A recorded run that was converted into a run file of ours (``grpo_core/trainers/conversion.py``), read in place.

The tables are those of every run file. A row of ``step`` holds the arrays of an update (empty if the source only
contained text). The row of ``text`` with the same number holds the rest as JSON: table of completions, reports and
losses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.foreign.replies import fits
from grpo_core.foreign.trajectory import ToolCall, Trajectory, Turn
from grpo_core.parsing import object_in
from grpo_core.record import Step
from grpo_core.runs.database import explained
from grpo_core.runs.meta import all_rows
from grpo_core.runs.reader import RunReader
from grpo_core.text import tr

KEY = "recorded"
"""Key in the table ``meta`` under which all facts about the source that are not settings are stored as JSON."""
PLAIN = (
    "prompts", "completions", "answers", "reward_names", "reward_weights", "repeated", "metric_names", "trajectories",
)  # fmt: skip # names, side by side
ARRAYS = (
    "group", "rewards", "reward_parts", "advantage", "length", "truncated", "counted", "entropy", "staleness",
    "metrics",
)  # fmt: skip # names, side by side
TOKENS = ("sampling_logp", "training_logp")
"""The stored fields of :class:`Completions`: those without arrays, the arrays, and those with one per completion."""
MISSING = {"answers": None, "trajectories": None, "staleness": None, "metrics": None, "metric_names": ()}
"""Values of the fields that older files lack."""
PARTS: dict[str, type[Any]] = {"prompt": Turn, "turns": Turn, "calls": ToolCall}
"""The dataclass of a field's elements, for each field of a trajectory that is a tuple of dataclasses."""


class ConvertedRun(Source):
    """A converted run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with RunReader.open(path) as reader:
            self.title = reader.meta.title or path.stem
            self.settings = reader.meta.settings
            self.vocabulary = reader.origin.vocabulary
            with explained(path):
                facts = _parsed(all_rows(reader._connection).get(KEY), path)
            last = reader.last
        try:
            self.processes = max(int(facts["processes"]), 1)
            self.notes = [str(note) for note in facts["notes"]]
            self._why_no_step = str(facts["why_no_step"])
            self.has_losses = bool(facts["has_losses"])
            self.labels = [int(label) for label in facts["labels"]][:last]
        except (LookupError, TypeError, ValueError) as error:
            raise _damaged(path, error) from None

    def step(self, position: int) -> Step:
        with RunReader.open(self.path) as reader:
            try:
                step = reader.step(position)
            except NotRecordedError as error:
                raise NotRecordedError(self._why_no_step or str(error)) from None
        texts = self.completions(position)
        first = np.unique(step.group, return_index=True)[1]
        return dataclasses.replace(
            step,
            label=self.labels[position - 1],
            prompt_texts=tuple(texts.prompts[row] for row in first),
            completion_texts=texts.completions,
        )

    def completions(self, position: int) -> Completions:
        table = self._rest(position).get("table")
        if table is None:
            raise NotRecordedError(tr("No completions are recorded at this step."))
        try:
            return table_from(table)
        except (LookupError, TypeError, ValueError) as error:
            raise _damaged(self.path, error) from None

    def reports(self, position: int) -> Sequence[Report]:
        try:
            return [Report(step=int(step), numbers=dict(numbers)) for step, numbers in self._rest(position)["reports"]]
        except (LookupError, TypeError, ValueError) as error:
            raise _damaged(self.path, error) from None

    def losses(self, position: int) -> np.ndarray | None:
        losses = self._rest(position).get("losses")
        return None if losses is None else np.array(losses, np.float64)

    def incomplete(self, position: int) -> str:
        return str(self._rest(position).get("incomplete") or "")

    def _rest(self, position: int) -> dict[str, Any]:
        """Return the part of an update that the file stores separately from its arrays."""
        with RunReader.open(self.path) as reader, explained(self.path):
            row = reader._connection.execute("SELECT text FROM text WHERE id = ?", (position,)).fetchone()
        return _parsed(None if row is None else row[0], self.path)


def plain_table(table: Completions) -> dict[str, Any]:
    """Convert a table of completions to JSON values."""
    return {name: as_plain(getattr(table, name)) for name in (*PLAIN, *ARRAYS, *TOKENS)}


def as_plain(value: Any) -> Any:
    """Convert a field of a table to JSON values. Fields of a trajectory with their default value are omitted."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: as_plain(one) for field, one in fields if one != field.default}
    return [as_plain(one) for one in value] if isinstance(value, tuple) else value


def table_from(plain: dict[str, Any]) -> Completions:
    """Convert the result of :func:`plain_table` back to a table of completions.

    Raises:
        LookupError, TypeError, ValueError: the argument is not a valid result of that function.
    """
    known = {**MISSING, **plain}
    kinds = {"group": np.int64, "length": np.int64, "truncated": bool, "counted": bool}
    made: dict[str, Any] = {
        name: None if (x := known[name]) is None else np.array(x, kinds.get(name, np.float64)) for name in ARRAYS
    }
    made["trajectories"] = _each(known["trajectories"], from_plain)
    if any(rows is not None and len(rows) != len(known["prompts"]) for rows in made.values()):
        raise ValueError("its columns are of different lengths")
    for name in TOKENS:
        made[name] = None if known[name] is None else tuple(np.array(row, np.float64) for row in known[name])
    return Completions(
        prompts=tuple(known["prompts"]),
        completions=tuple(known["completions"]),
        answers=_each(known["answers"], str),
        reward_names=tuple(known["reward_names"]),
        reward_weights=tuple(map(float, known["reward_weights"])),
        repeated=bool(known["repeated"]),
        metric_names=tuple(map(str, known["metric_names"])),
        **made,
    )


def _each(values: Any, made: Callable[[Any], Any]) -> tuple[Any, ...] | None:
    """Return ``made`` of each value that is not None. None if there are no values."""
    return None if values is None else tuple(None if one is None else made(one) for one in values)


def from_plain(plain: Any) -> Trajectory:
    """Convert JSON values from :func:`as_plain` back to a trajectory.

    Raises:
        TypeError: ``plain`` is not a trajectory: a field is missing, unknown or of another type.
    """
    trajectory: Trajectory = _built(Trajectory, plain)
    if not fits(trajectory, Trajectory):
        raise TypeError("a field of the trajectory has another type")
    return trajectory


def _built(kind: type[Any], plain: Any) -> Any:
    fields = {**plain}
    for name, value in fields.items():
        if isinstance(value, list):
            part = PARTS.get(name)
            fields[name] = tuple(_built(part, one) if part else _fixed(one) for one in value)
    return kind(**fields)


def _fixed(value: Any) -> Any:
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def _parsed(text: object, path: Path) -> dict[str, Any]:
    value = object_in(text)
    if value is None:
        raise _damaged(path, ValueError("a row is missing"))
    return value


def _damaged(path: Path, error: Exception) -> RunFileError:
    return RunFileError(
        tr("{name} cannot be read as a converted run ({error}); it is damaged.").format(name=path.name, error=error)
    )
