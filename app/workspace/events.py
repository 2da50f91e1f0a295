"""Updates worth stopping at: the first clipped token, a dead group, a new best action, or changed settings."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from app.workspace.run_handle import RunHandle
from grpo_core.text import tr

CLIP, DEAD, BEST, CHANGED = tr("clip", "mark"), tr("dead group"), tr("new best action"), tr("settings changed")
EVENTS = (CLIP, DEAD, BEST, CHANGED)


def next_event(run: RunHandle, step: int, forwards: bool = True) -> tuple[int, str] | None:
    """Return the nearest update after (or before) ``step`` at which an event begins, with its description, or None."""
    nearest = [
        (onsets.after(step) if forwards else onsets.before(step), what)
        for onsets, what in zip(run.onsets, (CLIP, DEAD, BEST), strict=True)
    ]
    nearest.append((_changed(run, step, forwards), CHANGED))
    real = [(at, what) for at, what in nearest if at is not None]
    return (min(real) if forwards else max(real)) if real else None


def _changed(run: RunHandle, step: int, forwards: bool) -> int | None:
    """Return the nearest update after (or before) ``step`` with changed settings, not counting the start of the run."""
    firsts = [first for first, _ in run.changes[1:]]
    place = bisect_right(firsts, step) if forwards else bisect_left(firsts, step) - 1
    return firsts[place] if 0 <= place < len(firsts) else None
