"""One explained number: its formula, the formula with values, and the agreement of two computations of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from grpo_core.explain.quantity import Quantity
from grpo_core.rounding import tolerance
from grpo_core.text import tr
from grpo_core.typeset import number


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A number computed in plain Python from the engine's values of its inputs.

    Attributes:
        symbol: LaTeX of this particular number, such as ``A_{3}``.
        latex: LaTeX of the formula; empty for a number that was recorded or measured.
        values: LaTeX of the formula's right-hand side with values.
        inputs: numbers that the formula reads, each of which can be explained in turn.
        scale: magnitude of the largest summand in the computation, to which rounding errors are proportional.
        unit: the unit; empty for a dimensionless number.
        note: remark on what the formula does not show; "recorded" or "measured" for a number without a formula.
        source: paper and equation.
    """

    symbol: str
    value: float
    latex: str = ""
    values: str = ""
    inputs: tuple[Quantity, ...] = ()
    scale: float = 0.0
    unit: str = ""
    note: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Node(Formula):
    """One explained number: its formula, compared with the result of the training code.

    Attributes:
        engine: result of the training code.
        precision: relative precision of the record (:attr:`grpo_core.record.Step.precision`).
    """

    quantity: Quantity
    title: str
    engine: float
    precision: float

    @property
    def latex_values(self) -> str:
        """LaTeX of the symbol, the formula with values, and the result."""
        return " = ".join([self.symbol, *([self.values] if self.values else []), number(self.value)])

    @property
    def difference(self) -> float:
        """The result of the formula less that of the training code."""
        same = self.value == self.engine or (math.isnan(self.value) and math.isnan(self.engine))
        return 0.0 if same else self.value - self.engine

    @property
    def tolerance(self) -> float:
        """Maximum difference explained by rounding."""
        return tolerance(self.precision, self.value, self.engine, self.scale)

    @property
    def agrees(self) -> bool:
        return abs(self.difference) <= self.tolerance

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
