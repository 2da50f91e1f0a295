"""The frozen state that panels draw from. Everything on screen is a function of it."""

from __future__ import annotations

from dataclasses import dataclass

from app.theme.tokens import Theme
from app.workspace.cursor import Cursor, Selection
from app.workspace.run_handle import RunHandle
from app.workspace.step_view import StepView
from app.workspace.trials import Trial
from grpo_core.config import Settings
from grpo_core.explain import Quantity
from grpo_core.progress import Progress


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
