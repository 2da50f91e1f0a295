"""Terms of the displayed objective, each linked to the number it shows."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.text import tr


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
