"""Updates worth stopping at: the first clip, a dead group, another best action, changed settings."""

from __future__ import annotations

import numpy as np

from app.workspace.run_handle import RunHandle

CLIP, DEAD, BEST, CHANGED = "clip", "dead group", "new best action", "settings changed"


def next_event(run: RunHandle, step: int, forwards: bool = True) -> tuple[int, str] | None:
    """The nearest update after (or before) ``step`` at which something begins, and what; None if there is none."""
    found = [
        (_nearest(_onsets(run, name), step, forwards), what)
        for name, what in (("clip_fraction", CLIP), ("dead_groups", DEAD), ("best_action", BEST))
    ]
    found.append((_nearest(np.array([first for first, _ in run.changes[1:]], dtype=int), step, forwards), CHANGED))
    real = [(at, what) for at, what in found if at is not None]
    return (min(real) if forwards else max(real)) if real else None


def _onsets(run: RunHandle, name: str) -> np.ndarray:
    """Updates (from 1) at which a series leaves zero, or at which the best action becomes another one."""
    values = run.series[name].values
    if name == "best_action":
        return np.flatnonzero(np.diff(values) != 0) + 2
    above = np.nan_to_num(values) > 0
    return np.flatnonzero(above & ~np.concatenate(([False], above[:-1]))) + 1


def _nearest(steps: np.ndarray, step: int, forwards: bool) -> int | None:
    beyond = steps[steps > step] if forwards else steps[steps < step]
    if not len(beyond):
        return None
    return int(beyond[0] if forwards else beyond[-1])
