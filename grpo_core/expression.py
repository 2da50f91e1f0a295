"""A factor or condition of an explained formula, evaluated in plain Python. Used by the tables
of algorithm variants. Terms of the displayed objective, each linked to the number it shows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grpo_core.config import Objective
from grpo_core.text import tr


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


class Reading(ABC):
    """The quantities of one token in one pass that an expression can read. Each quantity that is read becomes an input
    of the explanation.

    Attributes:
        index: index of a token in formulas: ``{i,t}``, or ``{i}`` if completions have one token.
        ratio_name, advantage_name: LaTeX symbols of the ratio at the objective's level, and of the advantage.
    """

    objective: Objective
    index: str
    ratio_name: str
    advantage_name: str

    @abstractmethod
    def read(self, name: str) -> float:
        """Return the engine's number called ``name`` for this token."""

    @abstractmethod
    def of_completion(self, rule: Callable[[Sequence[Reading]], Expression]) -> Expression:
        """Apply ``rule`` to the readings of all tokens of this completion, once per completion."""

    @property
    def ratio(self) -> float:
        """The ratio at the objective's level."""
        return self.read("ratio")

    @property
    def advantage(self) -> float:
        return self.read("advantage")

    @property
    def logp(self) -> float:
        """log π of the token in this pass."""
        return self.read("logp")

    @property
    def old_logp(self) -> float:
        return self.read("old_logp")

    @property
    def log_ratio(self) -> float:
        """log π − log π_old of the token, clamped if the objective sets a limit."""
        return self.read("log_ratio")


@dataclass(frozen=True, kw_only=True)
class Term:
    """A term of the displayed formula.

    Attributes:
        key: the number of the update that it shows and explains; empty for connecting pieces such as brackets.
        name: its name in words, such as "ratio"; part of the accessible name and the tooltip.
        help: one sentence for the tooltip.
        meaning: name of its colour in the theme.
        glue: whether it is kept on the same line as the preceding term.
        change: "old" for a term that is struck out, "new" for an added one, empty otherwise.
    """

    key: str = ""
    latex: str
    name: str = ""
    help: str = ""
    meaning: str = "text"
    glue: bool = False
    change: str = ""


def joint(latex: str, *, glue: bool = False) -> Term:
    """Return a term that only connects its neighbours, such as a bracket."""
    return Term(latex=latex, glue=glue)


def ratio_factor(latex: str, name: str) -> Term:
    """Return the term of a factor that a surrogate has in place of the plain ratio."""
    return Term(key="surrogate", latex=latex, name=name, help=tr("How the ratio enters this surrogate."))


RATIO = Term(
    key="ratio",
    latex="r",
    name=tr("ratio r"),
    help=tr("Probability of the token now divided by that under the old policy."),
)
ADVANTAGE = Term(
    key="advantage", latex="A", name=tr("advantage A"), help=tr("How much better the completion was than its group.")
)
LOG_PROB = Term(
    key="logp", latex=r"\log\pi", name=tr("log-probability"), help=tr("Log-probability of the sampled token.")
)
