"""One explained number: its formula, the formula with values, and the agreement of two computations of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from grpo_core.explain.quantity import Quantity
from grpo_core.rounding import tolerance
from grpo_core.text import tr
from grpo_core.typeset import number


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A number computed in plain Python from the engine's values of its inputs.

    Attributes:
        symbol: LaTeX of this particular number, such as ``A_{3}``.
        general: LaTeX of the formula; empty for a recorded number.
        values: LaTeX of the formula's right-hand side with values.
        value: the result.
        inputs: the inputs of the formula.
        scale: magnitude of the largest summand in the computation, to which rounding errors are proportional.
        unit: the unit; empty for a dimensionless number.
        note: remark on what the formula does not show.
        source: paper and equation.
    """

    symbol: str
    value: float
    general: str = ""
    values: str = ""
    inputs: tuple[Quantity, ...] = ()
    scale: float = 0.0
    unit: str = ""
    note: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Node:
    """One explained number.

    Attributes:
        quantity: its address.
        title: its name in words.
        symbol: LaTeX of this particular number.
        latex: the formula; empty for a number that was recorded or measured.
        latex_values: the formula with values.
        value: recomputed in plain Python from the engine's values of ``inputs``.
        engine: result of the training code.
        difference: value − engine.
        tolerance: maximum difference explained by rounding.
        agrees: whether the difference is within the tolerance.
        unit: the unit; empty for a dimensionless number.
        inputs: numbers that the formula reads, each of which can be explained in turn.
        note: remark on what the formula does not show; "recorded" or "measured" for a number without a formula.
        source: paper and equation.
    """

    quantity: Quantity
    title: str
    symbol: str
    latex: str
    latex_values: str
    value: float
    engine: float
    difference: float
    tolerance: float
    agrees: bool
    unit: str = ""
    inputs: tuple[Quantity, ...] = field(default=())
    note: str = ""
    source: str = ""

    @property
    def verdict(self) -> str:
        """A one-word verdict on the second computation."""
        return tr("agrees") if self.agrees else tr("differs")

    @property
    def comparison(self) -> str:
        """The verdict in numbers: both values, their difference, and the rounding tolerance."""
        return tr(
            "Computed a second time, in plain Python from the inputs shown: {value:.12g}. The training code gives "
            "{engine:.12g}. The difference is {difference:.2g}; rounding alone can cause {tolerance:.2g}."
        ).format(value=self.value, engine=self.engine, difference=self.difference, tolerance=self.tolerance)


def node(quantity: Quantity, title: str, formula: Formula, engine: float, precision: float) -> Node:
    """Compare ``formula`` with the engine's value.

    Args:
        quantity, title: address and name.
        formula: the second computation.
        engine: the first computation.
        precision: relative precision of the record (:attr:`grpo_core.record.Step.precision`).
    """
    value = formula.value
    same = value == engine or (math.isnan(value) and math.isnan(engine))
    difference = 0.0 if same else value - engine
    allowed = tolerance(precision, value, engine, formula.scale)
    parts = [formula.symbol, *([formula.values] if formula.values else []), number(value)]
    return Node(
        quantity=quantity,
        title=title,
        symbol=formula.symbol,
        latex=formula.general,
        latex_values=" = ".join(parts),
        value=value,
        engine=engine,
        difference=difference,
        tolerance=allowed,
        agrees=abs(difference) <= allowed,
        unit=formula.unit,
        inputs=formula.inputs,
        note=formula.note,
        source=formula.source,
    )
