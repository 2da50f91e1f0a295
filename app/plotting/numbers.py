"""Formatting of numbers: one way for cards, tables, tooltips and formulas, in every locale.

Three decimals by default, U+2212 for minus, full precision on hover, ASCII on copy so that a spreadsheet can read it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.metrics import METRICS
from grpo_core.text import tr

MINUS = "\u2212"
ABSENT = "\u2014"
NOT_COMPUTED = tr("not computed")
LARGEST_FIXED = 1e7
"""From here on a number is written with an exponent."""
RESIDUE = 1e-14
"""Below this a sum of numbers near one is what rounding has left of a zero."""
NEARLY_ZERO = "≈ 0"
ROUNDING, ROUNDING_32 = 1e-9, 1e-6
"""A sum below this share of what was added is what rounding has left of a zero: of numbers in 64 bits, and in 32."""


@dataclass(frozen=True)
class Missing:
    """A number that is not there, and why. ``reason`` is a clause such as "beta is 0, no reference model ran"."""

    reason: str = ""


class Residue(float):
    """The rounding left of a zero: it reads as nearly zero, and has no sign."""


def residue(value: float, scale: float) -> float:
    """``value`` as a :class:`Residue` where it is no more than rounding leaves of numbers as large as ``scale``."""
    return Residue(value) if 0 < abs(value) <= ROUNDING * scale else value


def residues(values: Sequence[float | None]) -> list[float | None]:
    """``values``, each a difference of numbers about as large as the largest of them, by :func:`residue`."""
    scale = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    return [None if value is None else residue(value, scale) for value in values]


def is_missing(value: object) -> bool:
    """Whether ``value`` stands for "not computed": None, NaN or ``Missing``."""
    if isinstance(value, (float, int, str)):  # nearly all are; to ask for any real number takes six times as long
        return value != value
    return value is None or isinstance(value, Missing) or (isinstance(value, numbers.Real) and value != value)


def shown(value: object, decimals: int = 3) -> str:
    """``value`` as it is on a card or in a table. A dash where there is none.

    Integers are grouped from 10,000 on. A number that is not zero never reads as zero: below the last decimal it gets
    an exponent, as it does from 1e7 on.
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
    """The sum of ``values`` (n,), all finite. 0 where no more than rounding is left of one. Numbers that 32 bits hold
    are taken to come from there."""
    with np.errstate(over="ignore"):
        share = ROUNDING_32 if np.array_equal(values, np.asarray(values, dtype=np.float32)) else ROUNDING
    whole = float(values.sum())
    return 0.0 if abs(whole) <= share * float(np.abs(values).sum()) else whole


def summed(value: object, decimals: int = 3) -> str:
    """``shown`` for a sum such as the loss: what rounding has left of a zero reads as nearly zero."""
    left = isinstance(value, numbers.Real) and 0 < abs(float(value)) < RESIDUE
    return NEARLY_ZERO if left else shown(value, decimals)


def metric_text(name: str, value: float, vocabulary: Sequence[str] = ()) -> str:
    """The value of a metric as a card shows it, without its unit.

    Args:
        name: a key of ``METRICS``.
        value: of it.
        vocabulary: names of the actions or tokens, by which the best one is named.
    """
    if name == "best_action" and 0 <= value < len(vocabulary):
        return vocabulary[int(value)]
    if METRICS[name].share and value == value:
        return f"{100 * value:.3g} %"
    return summed(value, METRICS[name].decimals)


def brief(value: object, decimals: int = 3) -> str:
    """``shown`` for a narrow cell: a number with an exponent keeps one digit of it, such as −2e−4."""
    text = shown(value, decimals)
    return _minus(_exponent(float(value), 0)) if isinstance(value, numbers.Real) and "e" in text else text


def signed(value: object, decimals: int = 3) -> str:
    """``shown`` with a plus where the number is above zero: for pushes and differences."""
    text = shown(value, decimals)
    if isinstance(value, Residue):
        return text
    positive = isinstance(value, numbers.Real) and float(value) > 0
    return "+" + text if positive else text


def full(value: object) -> str:
    """``value`` at full precision, for hover: the shortest text that reads back as the same float."""
    return NOT_COMPUTED if is_missing(value) else _minus(plain(value))


def hover(value: object, unit: str = "") -> str:
    """Text of a tooltip and of a screen reader: full precision with the unit, or that and why it was not computed."""
    if isinstance(value, Missing) and value.reason:
        return f"{NOT_COMPUTED}: {value.reason}"
    text = full(value)
    return f"{text} {unit}" if unit and not is_missing(value) else text


def plain(value: object) -> str:
    """``value`` for the clipboard: full precision, ASCII. Empty where there is none."""
    if is_missing(value):
        return ""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))
    return _words(value)


def share(value: object, decimals: int = 0) -> str:
    """A fraction as a percentage, such as "25 %". One between 0 and 1 never reads as either."""
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
    """Real minus signs, and no minus before a plain zero."""
    if text.startswith("-") and not text.strip("-0.% "):
        text = text[1:]
    return text.replace("-", MINUS)


def in_bytes(size: int) -> str:
    """The size of a file: 950 kB, 1.2 MB, 2.05 GB."""
    for unit, name, digits in ((1e9, "GB", 2), (1e6, "MB", 1)):
        if size >= unit:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size / 1e3:.0f} kB"
