"""Formatting of numbers in claims, with enough decimals to tell different numbers apart."""

from __future__ import annotations

import math

DECIMALS, MOST = 3, 9
"""Default and maximum number of decimals."""
MINUS = "\u2212"


def written(*values: float) -> tuple[str, ...]:
    """Format the numbers of one sentence with three decimals, or more if necessary to tell them apart or from 0."""
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
