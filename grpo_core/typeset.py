"""Numbers and sums as LaTeX, rounded for the eye. A LaTeX hyphen is set as a real minus."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

LONGEST = 6
"""Terms of a sum that are written out; of longer ones the first five and the last."""


def number(x: float) -> str:
    """Four significant digits. Whole numbers up to a billion in full."""
    if math.isnan(x):
        return r"\mathrm{undefined}"
    if math.isinf(x):
        return r"\infty" if x > 0 else r"-\infty"
    if x == int(x) and abs(x) < 1e9:
        return str(int(x))
    mantissa, _, exponent = f"{x:.4g}".partition("e")
    return mantissa if not exponent else rf"{mantissa} \times 10^{{{int(exponent)}}}"


def signed(x: float) -> str:
    """``x`` as it is after an operator: a negative number in parentheses."""
    text = number(x)
    return f"({text})" if text.startswith("-") else text


def squared(x: float) -> str:
    """``x`` to the second power. What is not a plain positive decimal in parentheses."""
    text = number(x)
    return f"{text}^{{2}}" if text.replace(".", "").isdigit() else f"({text})^{{2}}"


def series(items: Sequence[Item], show: Callable[[Item], str]) -> str:
    """The sum of ``items``, each as ``show`` writes it, shortened with dots when long."""
    if not items:
        return "0"
    long = len(items) > LONGEST
    shown = [show(item) for item in (items[: LONGEST - 1] if long else items)]
    if long:
        shown += [r"\cdots", show(items[-1])]
    text = shown[0]
    for term in shown[1:]:
        text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return text


def total(values: Sequence[float]) -> str:
    """The sum of plain numbers."""
    return series(values, number)


def plain(x: float) -> str:
    """Four significant digits for a sentence."""
    return f"{x:.4g}".replace("-", "−")
