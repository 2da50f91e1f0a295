"""REINFORCE (Williams 1992): A log π, without ratio or clip."""

from __future__ import annotations

from grpo_core.arrays import Array
from grpo_core.config import Objective
from grpo_core.expression import Expression, Reading
from grpo_core.formula_term import ADVANTAGE, LOG_PROB, Term
from grpo_core.surrogates.batch import Batch
from grpo_core.surrogates.surrogate import Path, Ratio, Script, Surrogate
from grpo_core.text import tr
from grpo_core.typeset import number, signed

PAPER = tr("after Williams 1992")


def value(b: Batch) -> Array:
    """Return A log π."""
    return b.advantage * b.logp


def pull(b: Batch, upstream: Array) -> Array:
    """Backpropagate with d/d log π = A."""
    return upstream * b.advantage


def explained(t: Reading) -> Expression:
    """Explain A log π for one token."""
    a, logp = t.advantage, t.logp
    return Expression(
        general=rf"{t.advantage_name} \log \pi_{t.index}",
        values=rf"{number(a)} \cdot {signed(logp)}",
        value=a * logp,
        note=tr("No ratio and no clip; the value is not a score, and its gradient is the push."),
        source=PAPER,
    )


def slope(t: Reading) -> Expression:
    """Explain the slope, A."""
    a = t.advantage
    return Expression(general=t.advantage_name, values=signed(a), value=a, source=PAPER)


def script(o: Objective) -> Script:
    """Return REINFORCE as code for an exported script. The slope is A."""
    return Script(lines=("surrogate = A * logp", "slope = A  # d surrogate / d log π"))


def terms(o: Objective) -> tuple[Term, ...]:
    """Return the terms of A log π."""
    return (ADVANTAGE, LOG_PROB)


SURROGATE = Surrogate(
    value=value,
    pull=pull,
    path=Path.LOG_PROB,
    ratio=Ratio.NONE,
    unclipped=tr("This loss has no clip: plain log-probabilities have no ratio to clip. The clip range has no effect."),
    explained=explained,
    slope=slope,
    script=script,
    terms=terms,
)
