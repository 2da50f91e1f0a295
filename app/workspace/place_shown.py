"""The token whose numbers are shown while none is selected, the same in every panel."""

from __future__ import annotations

import numpy as np

from app.workspace.step_view import StepView
from app.workspace.view import View
from grpo_core.record import Step


def fork_of(step: Step, group: int) -> int | None:
    """Return the index, counted from 0, of the first token at which the completions of ``group`` differ.

    None if they do not differ.
    """
    rows = step.group == group
    tokens = np.where(step.there[rows], step.tokens[rows], -1)
    parts = (tokens != tokens[:1]).any(axis=0)
    return int(parts.argmax()) if parts.any() else None


def place_selected(view: View) -> tuple[int, int] | None:
    """Return the selected (completion, token), counted from 0, or None if the update shown has no selected one."""
    step, row = view.step.step, view.selection.row
    if step is None or row is None or row >= len(step.group):
        return None
    return row, min(view.selection.token, max(int(step.there[row].sum()) - 1, 0))


def place_shown(view: View) -> tuple[int, int] | None:
    """Return the (completion, token) whose numbers are shown, counted from 0, or None if there is no update.

    It is the selected token, if any. Otherwise it is in the first completion of the first group with a signal, at the
    token where the completions of that group diverge.
    """
    step = view.step.step
    if step is None or not len(step.group):
        return None
    row, token = view.selection.row, view.selection.token
    if row is None or row >= len(step.group):
        row, token = view.step.derived(_unselected)
    there = int(step.there[row].sum())
    return (row, min(token, there - 1)) if there else None


def _unselected(view: StepView) -> tuple[int, int]:
    step = view.step
    assert step is not None
    dead = view.dead
    group = int(step.group[0]) if dead is None else int((~dead).argmax())  # the first group if all groups are dead
    first = int((step.group == group).argmax())
    return first, fork_of(step, int(step.group[first])) or 0
