"""Numbers in a form that a class can read: no exponents, and at most three digits."""

from __future__ import annotations

import math

from app.plotting.numbers import ABSENT, share, shown
from grpo_core.evaluated_step import ROUNDING
from grpo_core.teaching.lessons import Prediction
from grpo_core.text import tr

ABOUT_ZERO = tr("about 0")
LEAST = 0.0005
"""Absolute value below which a number would have no significant digit left."""


def readable(value: float, form: str) -> str:
    """Return ``value`` in one of the forms in ``grpo_core.teaching.lessons.SHOWN``.

    Raises:
        ValueError: there is no such form.
    """
    if not math.isfinite(value):
        return shown(value) if value == value else ABSENT
    match form:
        case "percent":
            return share(value) if value == 0 or abs(value) > ROUNDING else ABOUT_ZERO
        case "count":
            return shown(round(value))
        case "digits":
            return _digits(value)
        case _:
            raise ValueError(f"{form!r} is not a way to show a number")


def _digits(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) < LEAST:
        return ABOUT_ZERO
    decimals = min(max(2 - math.floor(math.log10(abs(value))), 0), 3)
    rounded = round(value, decimals)
    if rounded.is_integer():
        return shown(int(rounded))
    return shown(rounded, decimals).rstrip("0")


def number_text(prediction: Prediction, value: float) -> str:
    """Return the number computed by the run, or "about 0" for a change that counts as none."""
    changes = prediction.kind == "direction" or prediction.answer.since is not None
    if changes and 0 < abs(value) <= prediction.within:
        return ABOUT_ZERO
    return readable(value, prediction.shown)


def reads_as(prediction: Prediction, value: float) -> str:
    """Return the text of another choice with a number that is displayed like ``value``, or an empty string."""
    if prediction.kind != "choice" or not prediction.number:
        return ""
    here = number_text(prediction, value)
    for choice in prediction.choices:
        nearest = min(max(value, choice.low), choice.high)
        if value not in choice and number_text(prediction, nearest) == here:
            return choice.text
    return ""
