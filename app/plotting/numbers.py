"""Formatting of numbers, the same for cards, tables, tooltips and formulas, in every locale.

Three decimals by default, U+2212 for minus, full precision on hover, ASCII on copy so that a spreadsheet can read it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.evaluated_step import ROUNDING, ROUNDING_32
from grpo_core.metrics import METRICS
from grpo_core.text import tr

MINUS = "\u2212"
ABSENT = "\u2014"
NOT_COMPUTED = tr("not computed")
LARGEST_FIXED = 1e7
"""Magnitude from which on a number is written with an exponent."""
RESIDUE = 1e-14
"""Magnitude below which a sum of numbers near one counts as rounding error of zero."""
NEARLY_ZERO = "≈ 0"


@dataclass(frozen=True)
class Missing:
    """A missing number with its reason, a clause such as "beta is 0, no reference model ran"."""

    reason: str = ""


class Residue(float):
    """The rounding error of a zero. It is displayed as nearly zero, without a sign."""


def residue(value: float, scale: float) -> float:
    """``value``, as a :class:`Residue` if it is no more than the rounding error of numbers as large as ``scale``."""
    return as_rounded(value, ROUNDING * scale)


def as_rounded(value: float, rounding: float) -> float:
    """``value``, as a :class:`Residue` if its magnitude is not 0 and at most ``rounding``."""
    return Residue(value) if 0 < abs(value) <= rounding else value


def residues(values: Sequence[float | None]) -> list[float | None]:
    """``values`` by :func:`residue`, each being a difference of numbers about as large as the largest of them."""
    scale = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    return [None if value is None else residue(value, scale) for value in values]


def is_missing(value: object) -> bool:
    """Whether ``value`` means "not computed": None, NaN or ``Missing``."""
    # nearly all values are floats, and a check for any real number takes six times as long
    if isinstance(value, (float, int, str)):
        return value != value
    return value is None or isinstance(value, Missing) or (isinstance(value, numbers.Real) and value != value)


def shown(value: object, decimals: int = 3) -> str:
    """Text of ``value`` on a card or in a table. A dash if it is missing.

    Integers have thousands separators from 10,000 on. A nonzero number is never displayed as zero: below the last
    decimal it gets an exponent, as it does from 1e7 on.
    """
    if is_missing(value):
        return ABSENT
    if not isinstance(value, float):
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            return _words(value)
        if isinstance(value, numbers.Integral):
            return _minus(f"{int(value):,}" if abs(int(value)) >= 10_000 else str(int(value)))
    if isinstance(value, Residue):
        return NEARLY_ZERO
    number = float(value)
    if math.isinf(number):
        return "∞" if number > 0 else MINUS + "∞"
    if number != 0 and not 0.5 * 10**-decimals <= abs(number) < LARGEST_FIXED:
        return _minus(_exponent(number, 2))
    return _minus(f"{number:.{decimals}f}")


def total(values: np.ndarray) -> float:
    """The sum of ``values`` (n,), all finite. 0 if no more than rounding error is left. Numbers that fit into 32 bits
    are assumed to be computed in 32 bits."""
    with np.errstate(over="ignore"):
        share = ROUNDING_32 if np.array_equal(values, np.asarray(values, dtype=np.float32)) else ROUNDING
    whole = float(values.sum())
    return 0.0 if abs(whole) <= share * float(np.abs(values).sum()) else whole


def summed(value: object, decimals: int = 3, rounding: float = RESIDUE) -> str:
    """``shown`` for a sum such as the loss. A rounding error of zero is displayed as nearly zero.

    Args:
        value: the sum.
        decimals: its decimals.
        rounding: magnitude up to which it is a rounding error. The default is for a sum whose summands are not known.
    """
    left = isinstance(value, numbers.Real) and 0 < abs(float(value)) <= max(rounding, RESIDUE)
    return NEARLY_ZERO if left else shown(value, decimals)


def metric_text(name: str, value: float, vocabulary: Sequence[str] = (), rounding: float = 0.0) -> str:
    """Text of a metric on a card, without its unit.

    Args:
        name: a key of ``METRICS``.
        value: its value.
        vocabulary: names of the actions or tokens, to name the best one.
        rounding: magnitude up to which it is a rounding error, by :meth:`EvaluatedStep.rounding`.
    """
    if name == "best_action" and 0 <= value < len(vocabulary):
        return vocabulary[int(value)]
    if METRICS[name].share and value == value:
        return f"{100 * value:.3g} %"
    return summed(value, METRICS[name].decimals, rounding)


def brief(value: object, decimals: int = 3) -> str:
    """``shown`` for a narrow cell. A number with an exponent keeps only one digit, such as −2e−4."""
    text = shown(value, decimals)
    return _minus(_exponent(float(value), 0)) if isinstance(value, numbers.Real) and "e" in text else text


def signed(value: object, decimals: int = 3) -> str:
    """``shown`` with a plus sign for numbers above zero, for pushes and differences."""
    text = shown(value, decimals)
    if isinstance(value, Residue):
        return text
    positive = isinstance(value, numbers.Real) and float(value) > 0
    return "+" + text if positive else text


def full(value: object) -> str:
    """``value`` at full precision, for hover: the shortest text that reads back as the same float."""
    return NOT_COMPUTED if is_missing(value) else _minus(plain(value))


def hover(value: object, unit: str = "") -> str:
    """Text of a tooltip and for screen readers: full precision with the unit, or the reason why it was not computed."""
    if isinstance(value, Missing) and value.reason:
        return f"{NOT_COMPUTED}: {value.reason}"
    text = full(value)
    return f"{text} {unit}" if unit and not is_missing(value) else text


def plain(value: object) -> str:
    """``value`` for the clipboard, at full precision and in ASCII. Empty if it is missing."""
    if is_missing(value):
        return ""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))
    return _words(value)


def share(value: object, decimals: int = 0) -> str:
    """A fraction as a percentage, such as "25 %". One between 0 and 1 is never displayed as either."""
    if is_missing(value) or not isinstance(value, numbers.Real):
        return ABSENT
    percent = 100 * float(value)
    least = 10**-decimals
    if 0 < percent < least / 2:
        return f"< {least:g} %"
    if 100 - least / 2 < percent < 100:
        return f"> {100 - least:g} %"
    return _minus(f"{percent:.{decimals}f} %")


def _words(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _exponent(number: float, decimals: int) -> str:
    mantissa, exponent = f"{number:.{decimals}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _minus(text: str) -> str:
    """The text with real minus signs, and without a minus before a plain zero."""
    if text.startswith("-") and not text.strip("-0.% "):
        text = text[1:]
    return text.replace("-", MINUS)


def in_bytes(size: int) -> str:
    """The size of a file, such as 950 kB, 1.2 MB, 2.05 GB."""
    for unit, name, digits in ((1e9, "GB", 2), (1e6, "MB", 1)):
        if size >= unit:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size / 1e3:.0f} kB"
