"""An update's completions, and its prompts, as tables of rewards, lengths and other numbers that can be filtered."""

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
    return {column.key for n, column in enumerate(columns) if any(row[n] not in (None, "") for row in cells)}


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


BARS = "▁▂▃▄▅▆▇█"
"""Bars of a strip, from the update's lowest reward to its highest."""
UNSCORED = "·"
MOST_BARS = 32
"""Maximum number of bars in a prompt's strip. If it has more completions, each bar is a mean of consecutive ones."""

PROMPTS = (
    Column("prompt", tr("Prompt"), chars=5, decimals=0, help=tr("Number of the prompt.")),
    Column("strip", tr("Rewards"), chars=12, kind="mono",
           help=tr("One bar per completion, sorted, scaled to the lowest and highest reward of all; a dot: unscored.")),
    Column("reward", tr("Mean R"), chars=7, help=tr("Mean reward of its completions."), meaning="reward"),
    Column("spread", tr("Std R"), chars=6, help=tr("Standard deviation of these rewards, with n − 1.")),
    Column("silent", tr("No signal"), chars=7, decimals=2, help=tr("Share of its completions whose advantage is 0.")),
    Column("count", "n", chars=4, decimals=0, help=tr("Its completions.")),
    Column("length", tr("Length"), chars=6, decimals=1, unit=tr("tokens"), help=tr("Mean length in tokens.")),
    Column("turns", tr("Turns"), chars=5, decimals=1, help=tr("Mean number of turns of the model.")),
    Column("tools", tr("Tools"), chars=5, decimals=1, help=tr("Mean number of tool calls.")),
    Column("errors", tr("Errors"), chars=6, decimals=0, help=tr("Number of errors in all of its completions.")),
    Column("age", tr("Age"), chars=5, decimals=1, unit=tr("steps"),
           help=tr("Mean number of training steps since the policy that wrote them.")),
    Column("text", tr("Text"), chars=20, kind="text", help=tr("How the prompt begins.")),
)  # fmt: skip # table, one row per line
PROMPTS_KEPT = ("strip", "reward", "spread", "silent", "turns", "tools", "errors", "count", "age", "length", "text")
"""Columns by priority, for panels too narrow to show them all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompts:
    """The prompts of an update.

    Attributes:
        groups: (P,) number of each prompt, counted from 1, as in the table of completions.
        rows: (P,) each prompt's completions, by their row in the update.
        cells: (P,) rows of :data:`PROMPTS`.
    """

    groups: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    cells: list[list[object]]

    def listed(self, batch: Batch, wanted: Filter) -> list[int]:
        """Return the prompts with a completion that passes a filter, by their index in :attr:`groups`."""
        passing = set(batch.listed(wanted))
        return [place for place, rows in enumerate(self.rows) if not passing.isdisjoint(rows)]


def prompts_of(batch: Batch) -> Prompts:
    """Return the prompts of a batch, in the order of their numbers."""
    rows_of: dict[int, list[int]] = {}
    for row, group in enumerate(batch.values("group")):
        rows_of.setdefault(int(str(group)), []).append(row)
    groups = tuple(sorted(rows_of))
    numbers = {key: _numbers(batch.values(key)) for key in NUMBERS}
    rewards = numbers["reward"]
    known = rewards[np.isfinite(rewards)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    cells: list[list[object]] = []
    for group in groups:
        rows = rows_of[group]
        mine = {key: values[rows] for key, values in numbers.items()}
        paid, gained = mine["reward"][np.isfinite(mine["reward"])], mine["advantage"]
        gained = gained[np.isfinite(gained)]
        cells.append(
            [
                group,
                strip(mine["reward"], low, high),
                _mean(mine["reward"]),
                float(paid.std(ddof=1)) if len(paid) > 1 else None,
                float((gained == 0).mean()) if len(gained) else None,
                len(rows),
                *(_mean(mine[key]) for key in ("length", "turns", "tools")),
                int(np.nansum(mine["errors"])) if np.isfinite(mine["errors"]).any() else None,
                _mean(mine["age"]),
                preview(batch.prompts[rows[0]]),
            ]
        )
    return Prompts(groups=groups, rows=tuple(tuple(rows_of[group]) for group in groups), cells=cells)


NUMBERS = ("reward", "advantage", "length", "turns", "tools", "errors", "age")
"""Columns of the completions table that are summarized for each prompt."""


def strip(rewards: np.ndarray, low: float, high: float) -> str:
    """Return rewards (n,) as bars in ascending order, followed by a dot for each NaN.

    Args:
        rewards: rewards of a prompt's completions.
        low, high: rewards of the shortest and the tallest bar.
    """
    paid = np.sort(rewards[np.isfinite(rewards)])
    if len(paid) > MOST_BARS:
        paid = np.array([part.mean() for part in np.array_split(paid, MOST_BARS)])
    share = (paid - low) / (high - low) if high > low else np.zeros(len(paid))
    bars = "".join(BARS[height] for height in np.rint(share * (len(BARS) - 1)).astype(int).tolist())
    return bars + UNSCORED * min(int((~np.isfinite(rewards)).sum()), MOST_BARS)


def _numbers(cells: Sequence[object]) -> np.ndarray:
    return np.array([cell if isinstance(cell, int | float) else np.nan for cell in cells], np.float64)


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None
