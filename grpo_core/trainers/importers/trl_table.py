"""TRL's table of completions, one row per completion: passed to trackio, and written to ``completions_00012.parquet``
with ``log_completions=True``.

Columns in the order of TRL 1.16.0, ``GRPOTrainer.log``: step, prompt, completion, one per reward function, columns
added by the user's code, advantage. A missing reward is NaN; a row without any reward has advantage 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import RunFileError, shortened
from grpo_core.foreign.recording import Completions
from grpo_core.foreign.trajectory import trajectories_in
from grpo_core.text import tr
from grpo_core.trainers.importers.parquet import Columns, is_written
from grpo_core.trainers.importers.text_run import (
    TextRun,
    answers_in,
    consecutive_groups,
    numbered,
    recorded_settings,
)

BEFORE, AFTER = "completions_", ".parquet"
SUBFOLDER = "completions"
"""Subfolder of the run's output folder in which TRL stores the files."""
FIXED = ("step", "prompt", "completion", "advantage")
"""Columns that are not rewards."""
MOST_REWARDS = 256
"""Maximum number of reward columns, since each becomes a plotted series."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a TRL completions file, the folder of such files, or the output folder of a run."""
    return _place(path) is not None


def _place(path: Path) -> Path | None:
    places = (place for place in (path, path / SUBFOLDER) if place.exists())
    return next((place for place in places if numbered(place, BEFORE, AFTER)), None)


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


def table(
    columns: Mapping[str, Sequence[Any]],
    name: str,
    *,
    rewards: Sequence[str] | None = None,
    weights: Sequence[float] = (),
    group_size: int | None = None,
) -> Completions:
    """Return the table of one update.

    Args:
        columns: name -> values, in the table's order.
        name: name of the file, for error messages.
        rewards: columns that are reward functions; by default all columns of numbers with decimals.
        weights: weights of the functions; all 1 if the number of weights differs from that of the functions.
        group_size: completions per prompt; by default consecutive equal prompts form a group.

    Raises:
        RunFileError: a column is missing, or a value is not a number.
    """
    missing = [column for column in ("prompt", "completion") if column not in columns]
    if missing:
        raise RunFileError(tr("{file} has no column “{name}”.").format(file=name, name=missing[0]))
    names = [n for n in columns if n not in FIXED and _decimal(columns[n])] if rewards is None else list(rewards)
    names = [n for n in names if n in columns][:MOST_REWARDS]
    prompts, completions = (tuple(as_text(v) for v in columns[n]) for n in ("prompt", "completion"))
    parts = np.stack([_numbers(columns[n], n, name) for n in names], axis=1) if names else None
    known = tuple(weights) if len(weights) == len(names) else ()
    total = np.full(len(prompts), np.nan)
    if parts is not None:
        total = weighted(parts, np.asarray(known or (1.0,) * len(names)))
    return Completions(
        prompts=prompts,
        completions=completions,
        group=consecutive_groups(prompts, group_size),
        rewards=total,
        reward_names=tuple(names),
        reward_parts=parts,
        reward_weights=known,
        trajectories=trajectories_in(prompts, completions),
        answers=answers_in([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]),
        advantage=_numbers(columns["advantage"], "advantage", name) if "advantage" in columns else None,
    )


def weighted(parts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sum of the rewards under ``weights`` as TRL computes it, (B,). A missing one is 0; NaN if all are."""
    weights = weights if len(weights) == parts.shape[1] else np.ones(parts.shape[1])
    total = np.nansum(parts * weights, axis=1)
    return np.where(np.isnan(parts).all(axis=1), np.nan, total)


def as_text(value: Any) -> str | None:
    """Return a string unchanged, a conversation as JSON, and None for a missing value."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _decimal(values: Sequence[Any]) -> bool:
    """Return whether a column only holds numbers, at least one of them with decimals."""
    return any(isinstance(v, float) for v in values) and all(v is None or type(v) in (int, float) for v in values)


def _numbers(values: Sequence[Any], column: str, name: str) -> np.ndarray:
    try:
        return np.array([math.nan if v is None else float(v) for v in values], np.float64)
    except (TypeError, ValueError, OverflowError):
        raise RunFileError(
            tr("Column “{column}” of {file} contains something that is not a number.").format(column=column, file=name)
        ) from None
