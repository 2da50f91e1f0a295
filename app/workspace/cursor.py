"""The cursor (an update, its stage and pass) and the selection (a completion, a token, an action).

The number being explained follows both: when the selection or the pass changes, the same kind of number is explained
for the new completion, token, action or pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from grpo_core.explain import Quantity
from grpo_core.explain.quantity import KINDS


class Stage(IntEnum):
    """The stages of an update, in the order in which they happen."""

    SAMPLE = 0
    SCORE = 1
    NORMALIZE = 2
    UPDATE = 3


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """A position within a run.

    Attributes:
        stage: how much of the update is revealed.
        passed: the current inner pass, counted from 0; −1 means the last pass, however many there are.
        progress: share of the stage's film played so far, from 0 to 1; 1 if no film is playing.
        quick: whether the film is too short for panels to rearrange themselves for the stage.
    """

    step: int = 0
    stage: Stage = Stage.UPDATE
    passed: int = -1
    progress: float = 1.0
    quick: bool = False

    @property
    def still(self) -> Cursor:
        """This cursor at the end of its stage's film."""
        return self if self.progress == 1.0 else replace(self, progress=1.0, quick=False)

    def at(self, step: int) -> Cursor:
        """Return the cursor at update ``step``, with all stages revealed."""
        return replace(self, step=step, stage=Stage.UPDATE, passed=-1, progress=1.0, quick=False)

    def pass_of(self, passes: int) -> int:
        """Return the current pass, counted from 0, in an update of ``passes`` passes."""
        return passes - 1 if self.passed < 0 else min(self.passed, passes - 1)

    def next_stage(self, passes: int) -> Cursor | None:
        """Return the cursor one stage further, or None at the end of the update."""
        if self.stage < Stage.UPDATE:
            stage = Stage(self.stage + 1)
            return Cursor(step=self.step, stage=stage, passed=0 if stage is Stage.UPDATE else -1)
        here = self.pass_of(passes)
        return replace(self.still, passed=here + 1) if here + 1 < passes else None

    def previous_stage(self, passes: int) -> Cursor | None:
        """Return the cursor one stage back, or None at the beginning of the update."""
        here = self.pass_of(passes)
        if self.stage is Stage.UPDATE and here > 0:
            return replace(self.still, passed=here - 1)
        if self.stage > Stage.SAMPLE:
            return Cursor(step=self.step, stage=Stage(self.stage - 1))
        return None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The selection, shared by all panels.

    Attributes:
        row: the completion, counted from 0.
        token: the token within that completion, counted from 0.
        action: the action, an entry of the vocabulary.
    """

    row: int | None = None
    token: int = 0
    action: int | None = None


def at_selection(quantity: Quantity, selection: Selection) -> Quantity:
    """Return the same kind of number for the selected completion and action.

    A number that has neither is returned unchanged.
    """
    if quantity.row is not None and selection.row is not None:
        token = None if quantity.token is None else selection.token
        quantity = replace(quantity, row=selection.row, token=token)
    if quantity.row is None and quantity.action is not None and selection.action is not None:
        quantity = replace(quantity, action=selection.action)
    return quantity


def in_pass(quantity: Quantity, before: int, after: int) -> Quantity:
    """Return the same number in pass ``after`` (counted from 0) if it belonged to pass ``before``.

    Numbers of other passes were chosen explicitly and are returned unchanged.
    """
    kind = KINDS.get(quantity.name)
    if kind is None or "pass" not in kind.axes or quantity.passed != before:
        return quantity
    return replace(quantity, passed=after)


def same_kind(one: Quantity, other: Quantity) -> bool:
    """Return whether two addresses name the same kind of number, regardless of completion, action and pass."""
    place = {"row": None, "token": None, "action": None, "passed": 0}
    return replace(one, **place) == replace(other, **place)  # type: ignore[arg-type]
