"""Runs that are drawn with a sweep: the current run, and those of real training (``grpo-lab sweep --trl``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import Qt

from app.experiments.sweep.plan import Swept, grid_of
from app.plotting.line_data import NOTHING, Line, PointSet, Tag
from app.plotting.numbers import shown
from app.plotting.pyramid import Pyramid
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.parsing import is_number
from grpo_core.text import plural, tr

MOST = 1000
"""Maximum number of points drawn for a long run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnRun:
    """The data of the current run that is drawn with a sweep.

    Attributes:
        values, kl: (n,) the swept setting and the KL of a selection of updates.
        values_now, kl_now: (1,) the same for the update under the cursor; (0,) if there is none.
        course: the KL after each update.
        cursor: the update under the cursor; None at update 0.
    """

    values: np.ndarray = field(default_factory=lambda: NOTHING)
    kl: np.ndarray = field(default_factory=lambda: NOTHING)
    values_now: np.ndarray = field(default_factory=lambda: NOTHING)
    kl_now: np.ndarray = field(default_factory=lambda: NOTHING)
    course: Pyramid = field(default_factory=Pyramid)
    cursor: int | None = None


def own_run(run: RunHandle, cursor: int, path: str | None) -> OwnRun:
    """Return the data of ``run`` to draw with a sweep. ``cursor`` is the update under the cursor, or 0 for none.

    ``path`` is the swept setting. It is None if several settings vary together, in which case updates have no
    position on the axis.
    """
    series, kl = run.series["kl"], run.series["kl"].values
    if path is None:
        return OwnRun(course=series, cursor=cursor or None)
    steps, now = drawn_of(run.head), np.array([cursor] if cursor else [], dtype=int)
    return OwnRun(
        values=values_of(run, steps, path),
        kl=kl[steps - 1],
        values_now=values_of(run, now, path),
        kl_now=kl[now - 1],
        course=series,
        cursor=cursor or None,
    )


def of_run(view: View) -> str:
    """Return text that says where the current run is in the chart."""
    here = view.cursor.step
    if not here:
        return tr("At update 0 the policy is the reference: their KL is 0.")
    kl, beta = shown(float(view.run.series["kl"].values[here - 1])), view.step.objective.beta
    return tr("Update {here} of this run had β {beta:g}: the policy was then {kl} nats from the reference.").format(
        here=here, beta=beta, kl=kl
    )


def drawn_of(head: int) -> np.ndarray:
    """Return every k-th update of a run of ``head`` updates, for drawing.

    k is a power of two, so that the selection rarely changes as the run grows.
    """
    every = 1
    while head > MOST * every:
        every *= 2
    return np.arange(1, head + 1, every)


def grid_of_run(run: RunHandle, coming: float, others: Sequence[float]) -> tuple[float, ...]:
    """Return a grid of β for a run without a sweep: its values so far, that of its next update, and ``others``."""
    earlier = [settings.objective.beta for _, settings in run.changes]
    return grid_of([0.0, 0.1, *earlier, coming, *others])


def values_of(run: RunHandle, steps: np.ndarray, path: str) -> np.ndarray:
    """Return the value that a setting had in each of the updates ``steps`` (n,). NaN if it is not a number."""
    firsts = np.array([first for first, _ in run.changes])
    earlier = [settings.get(path) for _, settings in run.changes]
    values = np.array([value if is_number(value) else np.nan for value in earlier], float)
    return np.asarray(values[np.maximum(np.searchsorted(firsts, steps, side="right") - 1, 0)])


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
        value: float = getattr(self, name)
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

    def placed(self, over: Swept, measure: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the position and the height of every run that has both, (n,) each, in the order of the positions."""
        found = []
        for run in self.runs:
            value, y = run.value(over.path), run.measure(measure)
            x = float(over.at([value])[0]) if value is not None else math.nan
            if y is not None and math.isfinite(x):
                found.append((x, y))
        pairs = np.array(sorted(found), dtype=float).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def drawn(self, over: Swept, measure: str) -> tuple[PointSet, Line, list[Tag]]:
        """Return the marks, a line through the median at each value, which is only used for the read-out and not
        drawn, and the label.
        """
        x, y = self.placed(over, measure)
        places = np.unique(x)
        medians = np.array([np.median(y[x == place]) for place in places])
        return (
            PointSet(name="real", meaning=MEANING, marker="d", size=8, filled=False, x=x, y=y, z=14),
            Line(name="real", title=REAL, meaning=MEANING, style=Qt.PenStyle.NoPen, x=places, y=medians),
            [Tag(REAL, float(x[-1]), float(y[-1]), MEANING, above=True)] if len(x) else [],
        )

    def sentence(self, over: Swept) -> str:
        """Return sentences about the number of runs, runs without a mark, and the meaning of their numbers."""
        told = plural(
            "Marks: {count} run trained by TRL, from “{folder}”. Its KL is estimated from the samples of "
            "the last update; its reward is their mean reward.",
            "Marks: {count} runs trained by TRL, from “{folder}”. Their KL is estimated from the samples "
            "of the last update; their reward is the mean reward of these samples.",
            len(self.runs),
        ).format(count=len(self.runs), folder=self.folder.name)
        drawn = max(len(self.placed(over, measure)[0]) for measure in ("kl", "reward"))
        if drawn == len(self.runs):
            return told
        return tr(
            "{told} {missing} of them are not drawn: they have none of the values here, or neither number."
        ).format(told=told, missing=len(self.runs) - drawn)
