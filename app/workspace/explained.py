"""Keeping the explained number in step with the window: when the selection or the pass changes, the same kind of number
is explained for the new completion, token, action or pass.
"""

from __future__ import annotations

from dataclasses import replace

from app.workspace.cursor import Selection
from grpo_core.explain import Quantity
from grpo_core.explain.quantity import KINDS


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
