"""Formatting of numbers, the same in cards, tables, tooltips and formulas, and in every locale.

By default, numbers have three decimals and U+2212 as the minus sign. Tooltips show full precision. Copied numbers are
ASCII, so that a spreadsheet can read them.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

from grpo_core.evaluated_step import ROUNDING
from grpo_core.metrics import METRICS
from grpo_core.text import tr

MINUS = "\u2212"
ABSENT = "\u2014"
NOT_COMPUTED = tr("not computed")
LARGEST_FIXED = 1e7
"""Minimum magnitude of numbers written with an exponent."""
RESIDUE = 1e-14
"""Maximum magnitude of the rounding error of a sum of numbers near one."""
NEARLY_ZERO = "≈ 0"


@dataclass(frozen=True)
class Missing:
    """A missing number with the reason, a clause such as "beta is 0, no reference model ran"."""

    reason: str = ""


class Residue(float):
    """A nonzero number that is only rounding error. It is displayed as nearly zero, without a sign."""


def residue(value: float, scale: float) -> float:
    """Return ``value``, as a :class:`Residue` if it can be the rounding error of numbers as large as ``scale``."""
    return as_rounded(value, ROUNDING * scale)


def as_rounded(value: float, rounding: float) -> float:
    """Return ``value``, as a :class:`Residue` if it is nonzero and its magnitude is at most ``rounding``."""
    return Residue(value) if 0 < abs(value) <= rounding else value


def residues(values: Sequence[float | None]) -> list[float | None]:
    """Return differences, with those that can be rounding errors as :class:`Residue`.

    The subtracted numbers are assumed to be about as large as the largest difference.
    """
    scale = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    return [None if value is None else residue(value, scale) for value in values]


def is_missing(value: object) -> bool:
    """Return whether ``value`` means "not computed": None, NaN or :class:`Missing`."""
    # nearly all values are floats, and a check for any real number takes six times as long
    if isinstance(value, (float, int, str)):
        return value != value
    return value is None or isinstance(value, Missing) or (isinstance(value, numbers.Real) and value != value)


def shown(value: object, decimals: int = 3) -> str:
    """Return the text of ``value`` for a card or a table. A missing value is a dash.

    Integers of 10,000 or more have thousands separators. A nonzero number is never displayed as zero: if all its
    decimals would be 0, it has an exponent, as it does if it is 1e7 or more.
    """
    if type(value) is float and 10**-decimals <= value < LARGEST_FIXED:  # as are most numbers of a table
        return f"{value:.{decimals}f}"
    if type(value) is int:
        return _minus(f"{value:,}" if abs(value) >= 10_000 else str(value))
    if is_missing(value):
        return ABSENT
    if not isinstance(value, float):
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            return _words(value)
        if isinstance(value, numbers.Integral):
            return shown(int(value))
    if isinstance(value, Residue):
        return NEARLY_ZERO
    number = float(value)
    if math.isinf(number):
        return "∞" if number > 0 else MINUS + "∞"
    if number != 0 and not 0.5 * 10**-decimals <= abs(number) < LARGEST_FIXED:
        return _minus(_exponent(number, 2))
    return _minus(f"{number:.{decimals}f}")


def summed(value: object, decimals: int = 3, rounding: float = RESIDUE) -> str:
    """Return the text of a sum such as the loss: like :func:`shown`, but rounding error is displayed as nearly zero.

    Args:
        rounding: maximum magnitude of rounding error. Use the default if the summands are not known.
    """
    left = isinstance(value, numbers.Real) and 0 < abs(float(value)) <= max(rounding, RESIDUE)
    return NEARLY_ZERO if left else shown(value, decimals)


def metric_text(name: str, value: float, vocabulary: Sequence[str] = (), rounding: float = 0.0) -> str:
    """Return the text of a metric on a card, without its unit.

    Args:
        name: a key of ``METRICS``.
        vocabulary: names of the actions or tokens, used for the name of the best one.
        rounding: maximum magnitude of rounding error, from :meth:`EvaluatedStep.rounding`.
    """
    if name == "best_action" and 0 <= value < len(vocabulary):
        return vocabulary[int(value)]
    if METRICS[name].share and value == value:
        return f"{100 * value:.3g}%"
    return summed(value, METRICS[name].decimals, rounding)


def brief(value: object, decimals: int = 3) -> str:
    """Return the text of ``value`` for a narrow cell.

    It differs from :func:`shown` in having only one digit before an exponent, as in −2e−4.
    """
    text = shown(value, decimals)
    return _minus(_exponent(float(value), 0)) if isinstance(value, numbers.Real) and "e" in text else text


def signed(value: object, decimals: int = 3) -> str:
    """Return the text of a push or a difference: like :func:`shown`, but with a plus sign before positive numbers."""
    text = shown(value, decimals)
    if isinstance(value, Residue):
        return text
    positive = isinstance(value, numbers.Real) and float(value) > 0
    return "+" + text if positive else text


def full(value: object) -> str:
    """Return the shortest text of ``value`` that reads back as the same float, or "not computed"."""
    return NOT_COMPUTED if is_missing(value) else _minus(plain(value))


def hover(value: object, unit: str = "") -> str:
    """Return text for tooltips and screen readers: full precision with the unit, or why the value is missing."""
    if isinstance(value, Missing) and value.reason:
        return f"{NOT_COMPUTED}: {value.reason}"
    text = full(value)
    return f"{text} {unit}" if unit and not is_missing(value) else text


def plain(value: object) -> str:
    """Return ``value`` for the clipboard, at full precision and in ASCII. Empty if it is missing."""
    if is_missing(value):
        return ""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))
    return _words(value)


def share(value: object, decimals: int = 0) -> str:
    """Return a fraction as a percentage, for example "25 %".

    A fraction between 0 and 1 is never displayed as "0 %" or "100 %".
    """
    if is_missing(value) or not isinstance(value, numbers.Real):
        return ABSENT
    percent = 100 * float(value)
    least = 10**-decimals
    if 0 < percent < least / 2:
        return f"< {least:g}%"
    if 100 - least / 2 < percent < 100:
        return f"> {100 - least:g}%"
    return _minus(f"{percent:.{decimals}f}%")


def _words(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _exponent(number: float, decimals: int) -> str:
    mantissa, exponent = f"{number:.{decimals}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _minus(text: str) -> str:
    """Return the text with typographic minus signs, and without a minus sign before a zero."""
    if text.startswith("-") and not text.strip("-0.% "):
        text = text[1:]
    return text.replace("-", MINUS)


def in_bytes(size: int) -> str:
    """Return the size of a file as text, for example 950 kB, 1.2 MB or 2.05 GB."""
    for unit, name, digits in ((1e9, "GB", 2), (1e6, "MB", 1)):
        if size >= unit:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size / 1e3:.0f} kB"
