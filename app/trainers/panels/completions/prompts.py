"""An update's prompts as a table, with the rewards of each prompt's completions as a strip of bars, and mean values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.plotting.table_model import Column
from app.trainers.panels.completions.rows import Batch, Filter, preview
from grpo_core.text import tr

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
