"""A piece of the objective as the window writes it: one line of terms, each a door to the number it stands for."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Term:
    """A piece of the formula.

    Attributes:
        key: which number of the update it shows and explains; empty for pieces that only join, such as brackets.
        latex: the piece.
        name: in words, such as "ratio"; part of the accessible name and the tooltip.
        help: one sentence for the tooltip.
        meaning: colour by the theme's name.
        glue: stays on the line of the piece before it.
        change: "old" for a piece that is struck out, "new" for one that has come; empty for any other.
    """

    key: str = ""
    latex: str
    name: str = ""
    help: str = ""
    meaning: str = "text"
    glue: bool = False
    change: str = ""


def joint(latex: str, *, glue: bool = False) -> Term:
    """A piece that only joins its neighbours."""
    return Term(latex=latex, glue=glue)


def ratio_factor(latex: str, name: str) -> Term:
    """Substitute for the ratio in a surrogate that has no ratio alone."""
    return Term(key="surrogate", latex=latex, name=name, help=tr("How the ratio enters this surrogate."))


RATIO = Term(
    key="ratio", latex="r", name=tr("ratio r"), help=tr("Probability of the token now over that when sampled.")
)
ADVANTAGE = Term(
    key="advantage", latex="A", name=tr("advantage A"), help=tr("How much better than its group the completion was.")
)
LOG_PROB = Term(
    key="logp", latex=r"\log\pi", name=tr("log-probability"), help=tr("Log-probability of the sampled token.")
)
