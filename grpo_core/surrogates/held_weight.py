"""Surrogates of the form sg(w) A log π, in which the weight w is held constant."""

from __future__ import annotations

from collections.abc import Callable

from grpo_core.expression import Expression, Reading
from grpo_core.text import tr
from grpo_core.typeset import signed

Weight = Callable[[Reading], Expression]


def value_with(weight: Weight) -> Callable[[Reading], Expression]:
    """Return a function that explains w A log π for one token."""

    def explained(t: Reading) -> Expression:
        w, a, logp = weight(t), t.advantage, t.logp
        constant = tr("The weight is held constant in the gradient.")
        return Expression(
            general=rf"{w.general} {t.advantage_name} \log \pi_{t.index}",
            values=rf"{w.values} \cdot {signed(a)} \cdot {signed(logp)}",
            value=w.value * a * logp,
            note=f"{w.note} {constant}",
            source=w.source,
            scale=w.size * abs(a * logp),
        )

    return explained


def slope_with(weight: Weight) -> Callable[[Reading], Expression]:
    """Return a function that explains the slope w A, the derivative with respect to log π, for one token."""

    def explained(t: Reading) -> Expression:
        w, a = weight(t), t.advantage
        return Expression(
            general=rf"{w.general} {t.advantage_name}",
            values=rf"{w.values} \cdot {signed(a)}",
            value=w.value * a,
            note=w.note,
            source=w.source,
            scale=w.size * abs(a),
        )

    return explained
