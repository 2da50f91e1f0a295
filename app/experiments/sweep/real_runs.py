"""Runs of a sweep of real training (``grpo-lab sweep --trl``) as marks in the charts of a bandit's sweep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import Qt

from app.experiments.sweep.grid_axis import GridAxis, is_number
from app.plotting.line_data import Line, PointSet, Tag
from grpo_core.config import Settings
from grpo_core.text import plural, tr

REAL = tr("real runs")
MEANING = "reference"
"""The theme's name for the colour of the marks."""


@dataclass(frozen=True, kw_only=True)
class RealRun:
    """A run trained by TRL.

    Attributes:
        kl, reward: the KL estimated from the samples of the last update, in nats, and the mean reward of these samples;
            NaN if the trace has none.
    """

    settings: Settings
    updates: int
    kl: float
    reward: float

    def value(self, path: str) -> Any:
        """Return the value of the setting ``path``, or None if the run does not have it."""
        try:
            return self.settings.get(path)
        except (AttributeError, KeyError):
            return None

    def measure(self, name: str) -> float | None:
        """Return the run's “kl” or “reward”, or None if the trace has none."""
        value = {"kl": self.kl, "reward": self.reward}[name]
        return value if math.isfinite(value) else None


@dataclass(frozen=True, kw_only=True)
class RealRuns:
    """The runs of a sweep of real training for which there are traces.

    Attributes:
        runs: the runs, in the order of the sweep.
    """

    folder: Path
    runs: tuple[RealRun, ...] = ()

    def values(self, path: str) -> list[float]:
        """Return the values that a setting has in the runs, without those that are not numbers."""
        return [value for run in self.runs if is_number(value := run.value(path))]

    def placed(self, grid: GridAxis, path: str, measure: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the position and the height of every run that has both, (n,) each, in the order of the positions."""
        found = []
        for run in self.runs:
            value, y = run.value(path), run.measure(measure)
            x = float(grid.at([value])[0]) if value is not None else math.nan
            if y is not None and math.isfinite(x):
                found.append((x, y))
        pairs = np.array(sorted(found), dtype=float).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def points(self, grid: GridAxis, path: str, measure: str) -> PointSet:
        x, y = self.placed(grid, path, measure)
        return PointSet(name="real", meaning=MEANING, marker="d", size=8, filled=False, x=x, y=y, z=14)

    def line(self, grid: GridAxis, path: str, measure: str) -> Line:
        """Return a line through the median at each value, which is only used for the read-out and not drawn."""
        x, y = self.placed(grid, path, measure)
        places = np.unique(x)
        medians = np.array([np.median(y[x == place]) for place in places])
        return Line(name="real", title=REAL, meaning=MEANING, style=Qt.PenStyle.NoPen, x=places, y=medians)

    def tags(self, grid: GridAxis, path: str, measure: str) -> list[Tag]:
        x, y = self.placed(grid, path, measure)
        return [Tag(REAL, float(x[-1]), float(y[-1]), MEANING, above=True)] if len(x) else []

    def sentence(self, grid: GridAxis, path: str) -> str:
        """Return sentences about the number of runs, runs without a mark, and the meaning of their numbers."""
        told = plural(
            "Marks: {count} run trained by TRL, from “{folder}”. Its KL is estimated from the samples of "
            "the last update; its reward is their mean reward.",
            "Marks: {count} runs trained by TRL, from “{folder}”. Their KL is estimated from the samples "
            "of the last update; their reward is the mean reward of these samples.",
            len(self.runs),
        ).format(count=len(self.runs), folder=self.folder.name)
        drawn = max(len(self.placed(grid, path, measure)[0]) for measure in ("kl", "reward"))
        if drawn == len(self.runs):
            return told
        return tr(
            "{told} {missing} of them are not drawn: they have none of the values here, or neither number."
        ).format(told=told, missing=len(self.runs) - drawn)
