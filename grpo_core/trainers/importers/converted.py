"""A recorded run that was converted into a run file of ours (``grpo_core/trainers/conversion.py``), read in place.

The tables are those of every run file. A row of ``step`` holds the arrays of an update (empty if the source only
contained text). The row of ``text`` with the same number holds the rest as JSON: table of completions, reports and
losses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.foreign.plain_trajectory import as_plain, from_plain
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.parsing import object_in
from grpo_core.record import Step
from grpo_core.runs.database import explained
from grpo_core.runs.meta import all_rows
from grpo_core.runs.reader import RunReader
from grpo_core.text import tr

KEY = "recorded"
"""Key in the table ``meta`` under which all facts about the source that are not settings are stored as JSON."""
ARRAYS = (
    "group", "rewards", "reward_parts", "advantage", "length", "truncated", "counted", "entropy", "staleness",
    "metrics",
)  # fmt: skip # names, side by side
TOKENS = ("sampling_logp", "training_logp")
"""Fields of :class:`Completions` that hold one array per completion."""


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
        texts = self.texts(position)
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
    plain: dict[str, Any] = {
        "prompts": table.prompts,
        "completions": table.completions,
        "answers": table.answers,
        "reward_names": table.reward_names,
        "reward_weights": table.reward_weights,
        "repeated": table.repeated,
        "metric_names": table.metric_names,
    }
    if table.trajectories is not None:
        plain["trajectories"] = [None if one is None else as_plain(one) for one in table.trajectories]
    plain |= {name: None if (x := getattr(table, name)) is None else x.tolist() for name in ARRAYS}
    return plain | {
        name: None if (rows := getattr(table, name)) is None else [row.tolist() for row in rows] for name in TOKENS
    }


def table_from(plain: dict[str, Any]) -> Completions:
    """Convert the result of :func:`plain_table` back to a table of completions.

    Raises:
        LookupError, TypeError, ValueError: the argument is not a valid result of that function.
    """
    known = {"staleness": None, "metrics": None, **plain}  # missing in older files
    kinds = {"group": np.int64, "length": np.int64, "truncated": bool, "counted": bool}
    arrays = {name: None if (x := known[name]) is None else np.array(x, kinds.get(name, np.float64)) for name in ARRAYS}
    tokens = {
        name: None if plain[name] is None else tuple(np.array(row, np.float64) for row in plain[name])
        for name in TOKENS
    }
    count = len(plain["prompts"])
    if any(array is not None and len(array) != count for array in arrays.values()):
        raise ValueError("its columns are of different lengths")
    made: dict[str, Any] = {**arrays, **tokens}
    if plain.get("answers") is not None:
        made["answers"] = tuple(None if one is None else str(one) for one in plain["answers"])
    turns = plain.get("trajectories")
    if turns is not None:
        if len(turns) != count:
            raise ValueError("its columns are of different lengths")
        made["trajectories"] = tuple(None if one is None else from_plain(one) for one in turns)
    return Completions(
        prompts=tuple(plain["prompts"]),
        completions=tuple(plain["completions"]),
        reward_names=tuple(plain["reward_names"]),
        reward_weights=tuple(map(float, plain["reward_weights"])),
        repeated=bool(plain["repeated"]),
        metric_names=tuple(map(str, plain.get("metric_names", ()))),
        **made,
    )


def _parsed(text: object, path: Path) -> dict[str, Any]:
    value = object_in(text)
    if value is None:
        raise _damaged(path, ValueError("a row is missing"))
    return value


def _damaged(path: Path, error: Exception) -> RunFileError:
    return RunFileError(
        tr("{name} cannot be read as a converted run ({error}); it is damaged.").format(name=path.name, error=error)
    )
