"""Reason about truncated completions, which are the first thing to check if no answer is correct."""

from __future__ import annotations

import numpy as np

from grpo_core.claims.cards import Card
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.lm.vocabulary import STOP
from grpo_core.reasons.reason import Check, Reason
from grpo_core.text import tr


def truncated(n: Numbers) -> Reason | None:
    """Return the reason to show on the card of the mean length: how many completions reached the limit."""
    step = n.step
    if not step.settings.is_language:
        return None
    last = np.maximum(step.mask.sum(axis=-1) - 1, 0)
    cut = np.flatnonzero(step.tokens[np.arange(len(last)), last] != STOP)
    if not len(cut):
        return None
    count, total, limit = len(cut), len(last), step.settings.language.max_tokens
    return Reason(
        key="length",
        chip=tr("{count} of {total} cut off").format(count=count, total=total),
        kind="unhealthy" if 2 * count > total else "note",
        quantities=tuple(Quantity("tokens", row=int(row)) for row in cut[:8]),
        claims=(Card.of("cut_off", count=count, total=total, limit=limit, stop=STOP),),
    )


CHECKS: dict[str, Check] = {"length": lambda n, passed: truncated(n)}
"""Checks by the metric to which the reason belongs."""
