"""A surrogate that grows with the square root of the ratio: S = 2 √r A, whose derivative by log r is √r A."""

from __future__ import annotations

import math

from grpo_core.arrays import Array
from grpo_core.config import Objective
from grpo_core.expression import ADVANTAGE, Expression, Reading, Term, ratio_factor
from grpo_core.surrogates import Batch, Path, Ratio, Script, Surrogate
from grpo_core.typeset import number, signed

SOURCE = "example-part"


def value(b: Batch) -> Array:
    """Return 2 √r A."""
    return 2 * b.xp.sqrt(b.ratio) * b.advantage


def pull(b: Batch, upstream: Array) -> Array:
    """Backpropagate with d/d log r = √r A."""
    return upstream * b.xp.sqrt(b.ratio) * b.advantage


def explained(t: Reading) -> Expression:
    """Explain 2 √r A for one token."""
    return Expression(
        general=rf"2 \sqrt{{{t.ratio_name}}} {t.advantage_name}",
        values=rf"2 \cdot \sqrt{{{number(t.ratio)}}} \cdot {signed(t.advantage)}",
        value=2 * math.sqrt(t.ratio) * t.advantage,
        note="The square root takes weight off a ratio above 1 and adds some to a ratio below 1.",
        source=SOURCE,
    )


def slope(t: Reading) -> Expression:
    """Explain the slope √r A."""
    return Expression(
        general=rf"\sqrt{{{t.ratio_name}}} {t.advantage_name}",
        values=rf"\sqrt{{{number(t.ratio)}}} \cdot {signed(t.advantage)}",
        value=math.sqrt(t.ratio) * t.advantage,
        source=SOURCE,
    )


def script(o: Objective) -> Script:
    """Return the surrogate as code for an exported script."""
    return Script(
        lines=(
            "surrogate = 2 * np.sqrt(ratio) * A",
            "slope = np.sqrt(ratio) * A  # d surrogate / d log r",
        )
    )


def terms(o: Objective) -> tuple[Term, ...]:
    """Return the terms 2 √r and A."""
    return (ratio_factor(r"2\sqrt{r}", "root of the ratio"), ADVANTAGE)


TILTED = Surrogate(
    value=value,
    pull=pull,
    path=Path.RATIO,
    ratio=Ratio.LEVEL,
    unclipped="This loss has no clip: the square root dampens large ratios and never stops a push.",
    explained=explained,
    slope=slope,
    script=script,
    terms=terms,
)
