"""Surrogates of the form S = sg(w) A log π, in which the weight w is held constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grpo_core.arrays import Array, stop_gradient
from grpo_core.expression import Expression, Reading
from grpo_core.surrogates.batch import Batch
from grpo_core.surrogates.surrogate import Path, Surrogate
from grpo_core.text import tr
from grpo_core.typeset import signed


def with_held_weight(
    weight: Callable[[Batch], Array], explained_weight: Callable[[Reading], Expression], **rest: Any
) -> Surrogate:
    """Return the surrogate sg(w) A log π.

    Args:
        weight: w, in a shape that broadcasts to (..., B, T).
        explained_weight: w of one token.
        rest: the fields of :class:`Surrogate` that do not follow from the weight.
    """

    def value(b: Batch) -> Array:
        return stop_gradient(weight(b)) * b.advantage * b.logp

    def pull(b: Batch, upstream: Array) -> Array:
        """Backpropagate with d/d log π = w A."""
        return upstream * stop_gradient(weight(b)) * b.advantage

    def explained(t: Reading) -> Expression:
        w, a, logp = explained_weight(t), t.advantage, t.logp
        constant = tr("The weight is held constant in the gradient.")
        return Expression(
            general=rf"{w.general} {t.advantage_name} \log \pi_{t.index}",
            values=rf"{w.values} \cdot {signed(a)} \cdot {signed(logp)}",
            value=w.value * a * logp,
            note=f"{w.note} {constant}",
            source=w.source,
            scale=w.size * abs(a * logp),
        )

    def slope(t: Reading) -> Expression:
        """Explain the slope w A, the derivative with respect to log π."""
        w, a = explained_weight(t), t.advantage
        return Expression(
            general=rf"{w.general} {t.advantage_name}",
            values=rf"{w.values} \cdot {signed(a)}",
            value=w.value * a,
            note=w.note,
            source=w.source,
            scale=w.size * abs(a),
        )

    return Surrogate(value=value, pull=pull, path=Path.LOG_PROB, explained=explained, slope=slope, **rest)
