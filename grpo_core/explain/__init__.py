"""Explanations of an update's numbers: formula, formula with values, inputs, and an independent second computation.

The second computation is deliberately separate plain scalar Python (``math`` only). Each displayed formula is evaluated
from the displayed inputs, which have the engine's values, and compared with the result of the training code. Each input
is an address that can be explained in turn, down to the recorded numbers. Nodes are created one at a time.
"""

from __future__ import annotations

import math

from grpo_core.explain import advantages, cards, kl, loss, process, records, token
from grpo_core.explain import policy_numbers as policy
from grpo_core.explain.node import Formula, Node
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import KINDS, Quantity, is_card, quantity_title
from grpo_core.record import Step

__all__ = ["KINDS", "Node", "Numbers", "Quantity", "explain", "explain_from", "quantity_title"]


def explain(step: Step, quantity: Quantity) -> Node:
    """Explain one number of ``step``.

    Args:
        quantity: the number; named in :data:`KINDS`, ``METRICS`` or the step's measurements.

    Returns:
        The node. If the update lacks a required input, its value is NaN and its note says what is missing.

    Raises:
        KeyError: there is no number with that name.
        IndexError: the update has no such row, token, pass, position, action or group.
        SettingsError: the update lacks something that its objective needs.
    """
    return explain_from(Numbers(step), quantity)


def explain_from(numbers: Numbers, quantity: Quantity) -> Node:
    """Explain a number of an already evaluated update. Use this to explain many of its quantities."""
    quantity = numbers.canonical(quantity)
    return Node(
        quantity=quantity,
        title=quantity_title(quantity),
        engine=numbers[quantity],
        precision=numbers.precision,
        **vars(_formula(numbers, quantity)),
    )


def _formula(n: Numbers, q: Quantity) -> Formula:
    if is_card(q):
        return cards.explain_card(n, q)
    why = n.idle(q)
    if why:
        return Formula(symbol=r"\mathrm{unused}", value=1.0 if q.name == "ratio" else n[q], note=why)
    why = records.lacking(n, q)
    if why and math.isnan(n[q]):
        return records.absent(r"\mathrm{unknown}", why)
    return RULES[q.name](n, q)


RULES: dict[str, records.Rule] = {
    **records.RULES,
    **advantages.RULES,
    **process.RULES,
    **token.RULES,
    **kl.RULES,
    **loss.RULES,
    **policy.RULES,
    **cards.RULES,
}
"""Rules that explain each kind of number."""
