"""The current run as points in a sweep's chart: each update is drawn at the value that the swept setting had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from app.experiments.sweep.grid_axis import GridAxis, grid_of, is_number
from app.experiments.sweep.plan import BETA
from app.plotting.line_data import NOTHING
from app.plotting.pyramid import Pyramid
from app.workspace.run_handle import RunHandle

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
    series = run.series["kl"]
    kl = series.values
    steps = drawn_of(run.head if path is not None else 0)
    now = np.array([cursor] if cursor and path is not None else [], dtype=int)
    return OwnRun(
        values=NOTHING if path is None else values_of(run, steps, path),
        kl=kl[steps - 1],
        values_now=NOTHING if path is None else values_of(run, now, path),
        kl_now=kl[now - 1],
        course=series,
        cursor=cursor or None,
    )


def drawn_of(head: int) -> np.ndarray:
    """Return every k-th update of a run of ``head`` updates, for drawing.

    k is a power of two, so that the selection rarely changes as the run grows.
    """
    every = 1
    while head > MOST * every:
        every *= 2
    return np.arange(1, head + 1, every)


def grid_of_run(run: RunHandle, coming: float, others: Sequence[float]) -> GridAxis:
    """Return a grid for a run without a sweep: its values of β so far, that of its next update, and ``others``."""
    earlier = [settings.objective.beta for _, settings in run.changes]
    return GridAxis(grid_of([0.0, 0.1, *earlier, coming, *others]))


def values_of(run: RunHandle, steps: np.ndarray, path: str = BETA) -> np.ndarray:
    """Return the value that a setting had in each of the updates ``steps`` (n,). NaN if it is not a number."""
    firsts = np.array([first for first, _ in run.changes])
    earlier = [settings.get(path) for _, settings in run.changes]
    values = np.array([value if is_number(value) else np.nan for value in earlier], float)
    return np.asarray(values[np.maximum(np.searchsorted(firsts, steps, side="right") - 1, 0)])
