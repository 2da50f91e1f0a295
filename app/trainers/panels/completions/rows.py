"""An update's completions as a table of rewards, lengths and other numbers that can be filtered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.plotting.table_model import Column
from app.trainers.recorded_run import RecordedRun
from app.workspace.step_view import StepView
from app.workspace.view import View
from grpo_core import recompute
from grpo_core.errors import GrpoError
from grpo_core.foreign.trajectory import Trajectory
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.own_run import table_of

PREVIEW = 160
"""Maximum number of characters of a completion shown in the table."""

COLUMNS = (
    Column("row", "#", chars=3, decimals=0, help=tr("Number of the completion within the update.")),
    Column("group", tr("Prompt"), chars=5, decimals=0, help=tr("Number of its prompt: equal ones are a group.")),
    Column("reward", "R", chars=7, help=tr("Its reward from all reward functions together."), meaning="reward"),
    Column("advantage", "A", chars=9, kind="push", help=tr("How much better it did than what it is compared with.")),
    Column("length", tr("Length"), chars=6, decimals=0, unit=tr("tokens"), help=tr("Tokens of the completion.")),
    Column("kl", "KL", chars=7, decimals=4, meaning="kl",
           help=tr("Mean of its tokens' KL estimates, in the pass shown.")),
    Column("push", tr("Push"), chars=11, kind="push", decimals=4,
           help=tr("Sum over its tokens of −∂L/∂log π, in the pass shown.")),
    Column("turns", tr("Turns"), chars=5, decimals=0, help=tr("Number of turns of the model.")),
    Column("tools", tr("Tools"), chars=5, decimals=0, help=tr("Number of tool calls.")),
    Column("errors", tr("Errors"), chars=6, decimals=0,
           help=tr("Results of tools that look like an error, and errors that the trainer recorded.")),
    Column("age", tr("Age"), chars=5, decimals=0, unit=tr("steps"),
           help=tr("Training steps since the policy that wrote it.")),
    Column("importance", tr("w"), chars=6, decimals=3,
           help=tr("Mean over its tokens of min(π_old / π_sampler, C): C is the loss's cap, or 2 if it has none.")),
    Column("truncated", tr("Cut"), chars=4, kind="chip", help=tr("A limit on the length ended it.")),
    Column("text", tr("Completion"), chars=20, kind="text", help=tr("How it begins.")),
)  # fmt: skip # table, one row per line
KEYS = tuple(column.key for column in COLUMNS)
FILTERED = ("reward", "advantage", "length", "kl", "push", "turns", "tools", "errors", "age", "importance")
"""Columns that can be filtered by value."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A filter on completions.

    Attributes:
        text: substring of the prompt or completion, ignoring case; empty for all.
        column: one of :data:`FILTERED`.
        low, high: inclusive limits of the column's values; if one is set, completions without a value are left out.
        group: number, counted from 1, of the only prompt whose completions are listed; None for all.
    """

    text: str = ""
    column: str = FILTERED[0]
    low: float = -math.inf
    high: float = math.inf
    group: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """The completions of one update.

    Attributes:
        prompts, completions: (B,) strings, None if not recorded.
        cells: (B,) rows of :data:`COLUMNS`.
        trajectories: (B,) the turns, None if not recorded.
    """

    prompts: tuple[str | None, ...]
    completions: tuple[str | None, ...]
    cells: list[list[object]]
    trajectories: tuple[Trajectory | None, ...]

    def values(self, key: str) -> list[object]:
        """Return the values of a column of :data:`COLUMNS`, by its key, (B,)."""
        return [row[KEYS.index(key)] for row in self.cells]

    def listed(self, wanted: Filter) -> list[int]:
        """Return the completions that pass a filter, by their row in the update."""
        return [row for row in range(len(self.cells)) if self._passes(row, wanted)]

    def _passes(self, row: int, wanted: Filter) -> bool:
        if wanted.group is not None and self.cells[row][KEYS.index("group")] != wanted.group:
            return False
        text = wanted.text.casefold()
        if text and not any(text in (x or "").casefold() for x in (self.prompts[row], self.completions[row])):
            return False
        if wanted.low == -math.inf and wanted.high == math.inf:
            return True
        value = self.cells[row][KEYS.index(wanted.column)]
        return isinstance(value, float | int) and wanted.low <= value <= wanted.high


def filled(columns: Sequence[Column], cells: Sequence[Sequence[object]]) -> set[str]:
    """Return the keys of the columns that have values in any of the rows ``cells``."""
    return {columns[n].key for row in cells for n, cell in enumerate(row) if cell not in (None, "")}


def batch_of(view: View) -> Batch | None:
    """Return the completions of the update shown, or None if it has none.

    Raises:
        RunFileError: the file of a recorded run cannot be read.
    """
    table = view.run.table(view.cursor.step) if isinstance(view.run, RecordedRun) else None
    step = view.step.step
    if table is None and step is None:
        return None
    if table is None and step is not None:
        table = table_of(step, view.run.origin, view.step.advantage)
    assert table is not None
    count = len(table.rewards)
    length, truncated = table.length, table.truncated
    kl, push = _of_tokens(view.step) if step is not None and len(step.rewards) == count else (None, None)
    turns, age = table.trajectories or (None,) * count, table.staleness
    weight = _importance(step) if step is not None and len(step.rewards) == count else None
    cells: list[list[object]] = [
        [
            row + 1,
            int(table.group[row]) + 1,
            float(table.rewards[row]),
            None if table.advantage is None else float(table.advantage[row]),
            None if length is None else int(length[row]),
            None if kl is None else float(kl[row]),
            None if push is None else float(push[row]),
            *((None,) * 3 if (told := turns[row]) is None else (told.spoken, told.called, told.failures)),
            None if age is None else float(age[row]),
            None if weight is None else float(weight[row]),
            "" if truncated is None or not truncated[row] else tr("cut"),
            preview(table.completions[row]),
        ]
        for row in range(count)
    ]
    return Batch(prompts=table.prompts, completions=table.completions, cells=cells, trajectories=turns)


def _importance(step: Step) -> np.ndarray | None:
    """Return the mean importance weight of each completion's tokens, (B,), or NaN for a completion without any.

    The result is None if the sampler's log-probabilities are not recorded.
    """
    weights, both = recompute.importance_weights(step), recompute.scored_by_sampler(step)
    if weights is None:
        return None
    count = both.sum(axis=-1)
    return np.where(count > 0, np.where(both, weights, 0.0).sum(axis=-1) / np.maximum(count, 1), np.nan)


def preview(text: str | None) -> str:
    """Return the beginning of a string as a single line."""
    return "" if text is None else " ".join(text[: 2 * PREVIEW].split())[:PREVIEW]


def _of_tokens(view: StepView) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the mean KL estimate and summed push of each completion in the pass shown, (B,) each."""
    step = view.step
    assert step is not None
    try:
        terms, gradient = view.terms, view.gradient
    except GrpoError:  # the source lacks inputs that its own settings require
        return None, None
    used = step.mask & (step.part[view.passed] >= 0)[:, None]
    kl = None
    if terms is not None and terms.kl is not None:
        kl = np.where(used, terms.kl, 0.0).sum(axis=-1) / np.maximum(used.sum(axis=-1), 1)
    push = None if gradient is None else -np.where(used, gradient, 0.0).sum(axis=-1)
    return kl, push
