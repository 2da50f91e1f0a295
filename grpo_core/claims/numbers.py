"""Formatting of numbers in claims: with as many decimals as it takes to tell apart what differs."""

from __future__ import annotations

import math

DECIMALS, MOST = 3, 9
"""Decimals of a number, and the most that it gets where three do not tell it from another."""
MINUS = "\u2212"


def written(*values: float) -> tuple[str, ...]:
    """Numbers of one sentence, each with three decimals, or with more where two different ones, or one that is not 0
    and 0, would read alike."""
    apart = {0.0, *(float(value) for value in values if math.isfinite(value))}
    for decimals in range(DECIMALS, MOST):
        if len({_fixed(value, decimals) for value in apart}) == len(apart):
            return tuple(_fixed(value, decimals) for value in values)
    return tuple(_fixed(value, MOST) for value in values)


def _fixed(value: float, decimals: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", MINUS)
