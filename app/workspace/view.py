"""The frozen state that panels draw from, and the token whose numbers they show. All on screen is a function of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.theme.tokens import Theme
from app.workspace.cursor import Cursor, Selection
from app.workspace.run_handle import RunHandle
from app.workspace.step_view import StepView
from app.workspace.trials import Trial
from grpo_core.config import Settings
from grpo_core.explain import Quantity
from grpo_core.progress import Progress
from grpo_core.record import Step


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """The state of the window at one frame.

    Attributes:
        step: the update under the cursor, evaluated on demand.
        quantity: the number being explained, if any.
        wanted: those settings together with the structural changes that need a new run.
        running: whether updates are being computed or replayed.
        scale: the user's scale; 1 is 100 %.
        locked, hidden: the controls that a session locks or hides.
        trials: earlier runs shown for comparison, oldest first.
        progress: progress of the update being computed, with the completions being sampled; None if it is quick or
            none is being computed. It is not part of the stamp: panels that show it check it in every frame.
    """

    run: RunHandle
    head: int
    step: StepView
    cursor: Cursor
    following: bool
    selection: Selection
    quantity: Quantity | None
    next_settings: Settings
    wanted: Settings
    running: bool
    theme: Theme
    scale: float
    locked: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    trials: tuple[Trial, ...] = ()
    progress: Progress | None = None

    def stamp(self, *, planned: bool | str = True, filmed: bool = False) -> tuple[object, ...]:
        """Return a stamp that is equal for views that look the same, so that an unchanged frame costs one comparison.

        The position is its first entry.

        Args:
            planned: whether the settings of the next update are shown, or the dotted path of those that are.
            filmed: whether the film within a stage is shown.
        """
        plans: tuple[object, ...] = (self.next_settings, self.wanted, self.locked, self.hidden) if planned else ()
        if isinstance(planned, str):
            plans = (self.next_settings.get(planned),)
        return (
            self.place,
            self.run.id,
            self.following,
            self.selection,
            self.quantity,
            self.running,
            self.theme,
            self.scale,
            self.trials,
            *plans,
            *((self.cursor.progress,) if filmed else ()),
        )

    @property
    def place(self) -> tuple[object, ...]:
        """The run's data, the current update, and how much of it is revealed."""
        return self.run.version, self.head, self.step.key, self.cursor.still

    @property
    def at_head(self) -> bool:
        return self.cursor.step == self.head


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
