"""Scoring of predictions against the live run."""

from __future__ import annotations

import math
from collections.abc import Callable

from grpo_core.explain import Numbers, Quantity
from grpo_core.metrics import at_start
from grpo_core.record import Origin, Step
from grpo_core.teaching.lessons.lesson import Answer, Prediction

SIGNS = {-1: "down", 0: "same", 1: "up"}
"""Sign of a change -> name of the direction."""


def answered(
    answer: Answer, update: int, origin: Origin, step: Callable[[int], Step | None], check: Callable[[str], float]
) -> float:
    """Read the number that ``answer`` names from the run.

    Args:
        update: the update at which it is read if the answer does not name one.
        check: function that returns a number of the interactive by name.

    Returns:
        The number, or its change. NaN if the run does not have it.
    """
    at = update if answer.update is None else answer.update
    value = _value(answer, at, origin, step, check)
    return value if answer.since is None else value - _value(answer, answer.since, origin, step, check)


def _value(
    answer: Answer, at: int, origin: Origin, step: Callable[[int], Step | None], check: Callable[[str], float]
) -> float:
    if answer.check:
        return check(answer.check)
    if at == 0:
        return at_start(origin).get(answer.metric, math.nan)
    record = step(at)
    if record is None:
        return math.nan
    return float(Numbers(record)[answer.quantity or Quantity(answer.metric)])


def in_words(prediction: Prediction, guess: float | None) -> str:
    """Return a guess as text: a number, a direction, or the chosen option."""
    if guess is None:
        return ""
    if not prediction.options:
        return repr(guess)
    return SIGNS[round(guess)] if prediction.kind == "direction" else prediction.options[round(guess)].text


def right(prediction: Prediction, guess: float, value: float) -> bool:
    """Return whether ``guess`` is correct if the run's number is ``value``.

    A guess is a number, or a key of ``prediction.options``.

    Raises:
        ValueError: the prediction is of an unknown kind.
    """
    if math.isnan(value):
        return False
    options = prediction.options
    return value in options[round(guess)] if options else abs(guess - value) <= prediction.within


CLOSE = 3.0
"""Maximum error of a number that counts as close, as a multiple of the tolerance for a correct answer."""


def close(prediction: Prediction, guess: float, value: float) -> bool:
    """Return whether the number ``guess`` just misses: not correct, but within ``CLOSE`` times the tolerance.

    Directions and choices are correct or wrong, never close.
    """
    if prediction.options or math.isnan(value):
        return False
    return prediction.within < abs(guess - value) <= CLOSE * prediction.within


def as_told(prediction: Prediction, value: float) -> bool:
    """Return whether the run agrees with the lesson's statement about the answer."""
    low, high = prediction.holds
    return low <= value <= high
