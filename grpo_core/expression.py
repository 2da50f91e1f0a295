"""A part of an explained formula, evaluated in plain Python: what tables of switches hand to ``explain``."""

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
        general: LaTeX in letters.
        values: LaTeX with values put in.
        value: computed from those values with ``math`` alone; 1 or 0 for a condition.
        note: in words, what the formula cannot say.
        source: paper and equation.
        scale: size of the largest number on the way to ``value``, by which rounding is judged; 0: ``value`` itself.
    """

    general: str
    values: str
    value: float
    note: str = ""
    source: str = ""
    scale: float = 0.0

    @property
    def size(self) -> float:
        """The size by which rounding is judged."""
        return max(self.scale, abs(self.value))


def exponential(x: float) -> float:
    """e^x, infinite where a float cannot hold it."""
    return math.exp(x) if x < 709.78 else math.inf


class Reading(Protocol):
    """What an expression may read of one token in one pass. Whatever is read becomes an input of the explanation."""

    @property
    def objective(self) -> Objective:
        """The switches."""

    @property
    def index(self) -> str:
        """The general index of a token: ``{i,t}``, or ``{i}`` where completions are one token long."""

    @property
    def ratio_name(self) -> str:
        """LaTeX of the ratio at the objective's level."""

    @property
    def advantage_name(self) -> str:
        """LaTeX of the advantage."""

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
    def log_ratio(self) -> float:
        """log π − log π_old of the token, limited where the objective says so."""

    def of_completion(self, rule: Callable[[Sequence[Reading]], Expression]) -> Expression:
        """The value of ``rule`` over the readings of all tokens of this token's completion. Evaluated once a
        completion."""
