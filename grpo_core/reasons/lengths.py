"""Reason about truncated completions, which are the first thing to check if no answer is correct."""

from __future__ import annotations

import numpy as np

from grpo_core.claims.cards import Card
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.lm.calculator import CLOSE
from grpo_core.lm.vocabulary import STOP, encode
from grpo_core.premises import cut_off
from grpo_core.reasons.reason import Check, Reason
from grpo_core.text import tr


def truncated(n: Numbers) -> Reason | None:
    """Return the reason to show on the card of the mean length: how many completions reached the limit."""
    step = n.step
    if not step.settings.is_language:
        return None
    signs = {"stop": STOP, "call_end": encode(CLOSE)[0]}
    cut = np.flatnonzero(cut_off(step, **signs))
    if not len(cut):
        return None
    count, total, limit = len(cut), len(step.tokens), step.settings.language.max_tokens
    return Reason.of(
        "unhealthy" if 2 * count > total else "note",
        tr("{count} of {total} cut off").format(count=count, total=total),
        tuple(Quantity("written", row=int(row)) for row in cut[:8]),
        Card.of("cut_off", count=count, total=total, limit=limit, **signs),
    )


CHECKS: dict[str, Check] = {"length": lambda n, passed: truncated(n)}
"""Checks by the metric to which the reason belongs."""
