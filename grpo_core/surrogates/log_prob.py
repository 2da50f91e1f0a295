"""REINFORCE (Williams 1992): A log π, without ratio or clip."""

from __future__ import annotations

from grpo_core.expression import ADVANTAGE, LOG_PROB, Expression, Reading
from grpo_core.surrogates.surrogate import Path, Ratio, Script, Surrogate
from grpo_core.text import tr
from grpo_core.typeset import number, signed

PAPER = tr("after Williams 1992")


def explained(t: Reading) -> Expression:
    a, logp = t.advantage, t.logp
    return Expression(
        general=rf"{t.advantage_name} \log \pi_{t.index}",
        values=rf"{number(a)} \cdot {signed(logp)}",
        value=a * logp,
        note=tr("No ratio and no clip; the value is not a score, and its gradient is the push."),
        source=PAPER,
    )


def slope(t: Reading) -> Expression:
    a = t.advantage
    return Expression(general=t.advantage_name, values=signed(a), value=a, source=PAPER)


SURROGATE = Surrogate(
    value=lambda b: b.advantage * b.logp,
    pull=lambda b, upstream: upstream * b.advantage,
    path=Path.LOG_PROB,
    ratio=Ratio.NONE,
    unclipped=tr("This loss has no clip: plain log-probabilities have no ratio to clip. The clip range has no effect."),
    explained=explained,
    slope=slope,
    script=lambda o: Script(lines=("surrogate = A * logp", "slope = A  # d surrogate / d log π")),
    terms=lambda o: (ADVANTAGE, LOG_PROB),
)
