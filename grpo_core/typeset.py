"""Numbers and sums as rounded LaTeX. A hyphen in LaTeX is rendered as a minus sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

LONGEST = 6
"""Maximum number of terms written out; a longer sum shows the first five and the last."""


def number(x: float) -> str:
    """Return ``x`` as LaTeX with four significant digits. Integers up to a billion are written in full."""
    if math.isnan(x):
        return r"\mathrm{undefined}"
    if math.isinf(x):
        return r"\infty" if x > 0 else r"-\infty"
    if x == int(x) and abs(x) < 1e9:
        return str(int(x))
    mantissa, _, exponent = f"{x:.4g}".partition("e")
    return mantissa if not exponent else rf"{mantissa} \times 10^{{{int(exponent)}}}"


def signed(x: float) -> str:
    """Return ``x`` as written after an operator: a negative number in parentheses."""
    text = number(x)
    return f"({text})" if text.startswith("-") else text


def squared(x: float) -> str:
    """Return ``x`` squared, in parentheses unless it is a plain positive decimal."""
    text = number(x)
    return f"{text}^{{2}}" if text.replace(".", "").isdigit() else f"({text})^{{2}}"


def series(items: Sequence[Item], show: Callable[[Item], str]) -> str:
    """Return the sum of ``items`` as LaTeX, each term formatted by ``show``. A long sum is abbreviated with dots."""
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
    """Return the sum of ``values`` as LaTeX, such as 1 + 2 + 3."""
    return series(values, number)


def plain(x: float) -> str:
    """Return ``x`` with four significant digits, for a sentence."""
    return f"{x:.4g}".replace("-", "−")
