"""A factor or condition of an explained formula, evaluated in plain Python. Used by the tables
of algorithm variants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from grpo_core.config import Objective


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A factor or a condition of a formula.

    Attributes:
        general: LaTeX with symbols.
        values: LaTeX with the numbers substituted.
        value: computed from those values with ``math`` only; 1 or 0 for a condition.
        note: remark in words on what the formula does not show.
        source: paper and equation.
        scale: magnitude of the largest intermediate result, the scale for rounding errors; 0 means that of ``value``.
    """

    general: str
    values: str
    value: float
    note: str = ""
    source: str = ""
    scale: float = 0.0

    @property
    def size(self) -> float:
        """Scale for judging rounding errors: ``scale``, or the magnitude of ``value``."""
        return max(self.scale, abs(self.value))


def exponential(x: float) -> float:
    """Return e^x, or infinity if the result overflows a float."""
    return math.exp(x) if x < 709.78 else math.inf


class Reading(Protocol):
    """The quantities of one token in one pass that an expression can read. Each quantity that is read becomes an input
    of the explanation.
    """

    @property
    def objective(self) -> Objective:
        """The settings of the loss."""

    @property
    def index(self) -> str:
        """Index of a token in formulas: ``{i,t}``, or ``{i}`` if completions have one token."""

    @property
    def ratio_name(self) -> str:
        """LaTeX symbol of the ratio at the objective's level."""

    @property
    def advantage_name(self) -> str:
        """LaTeX symbol of the advantage."""

    @property
    def ratio(self) -> float:
        """The ratio at the objective's level."""

    @property
    def advantage(self) -> float:
        """The token's advantage."""

    @property
    def logp(self) -> float:
        """log π of the token in this pass."""

    @property
    def old_logp(self) -> float:
        """log π_old of the token."""

    @property
    def log_ratio(self) -> float:
        """log π − log π_old of the token, clamped if the objective sets a limit."""

    def of_completion(self, rule: Callable[[Sequence[Reading]], Expression]) -> Expression:
        """Apply ``rule`` to the readings of all tokens of this completion, once per completion."""
