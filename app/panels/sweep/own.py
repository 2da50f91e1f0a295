"""The run that is shown, as points of a sweep's plot: every update at the value it ran under."""

from __future__ import annotations

import numpy as np

from app.panels.sweep.places import Places, grid_of
from app.panels.sweep.plan import BETA
from app.workspace.run_handle import RunHandle

MOST = 1000
"""Points drawn of a long run."""


def drawn_of(head: int) -> np.ndarray:
    """The updates that stand for a run of ``head``: every 1st, 2nd, 4th ..., so that they stay the same ones."""
    every = 1
    while head > MOST * every:
        every *= 2
    return np.arange(1, head + 1, every)


def grid_of_run(run: RunHandle, coming: float) -> Places:
    """A grid for a run by itself: the β it has had, and that of its next update."""
    held = [settings.objective.beta for _, settings in run.changes]
    return Places(grid_of([0.0, 0.1, *held, coming]))


def values_of(run: RunHandle, steps: np.ndarray, path: str = BETA) -> np.ndarray:
    """The value of a setting that each of these updates (n,) ran under; NaN where it is no number."""
    firsts = np.array([first for first, _ in run.changes])
    held = [settings.get(path) for _, settings in run.changes]
    values = np.array([v if isinstance(v, (int, float)) and not isinstance(v, bool) else np.nan for v in held], float)
    return np.asarray(values[np.maximum(np.searchsorted(firsts, steps, side="right") - 1, 0)])
