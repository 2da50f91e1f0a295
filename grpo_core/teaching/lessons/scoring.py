"""Scoring of predictions against the live run."""

from __future__ import annotations

import math
from collections.abc import Callable

from grpo_core.explain import Numbers, Quantity
from grpo_core.metrics import at_start
from grpo_core.record import Origin, Step
from grpo_core.teaching.lessons.lesson import Answer, Choice, Prediction

SIGNS = {"down": -1, "same": 0, "up": 1}
"""Name of a direction -> sign of the change."""


def answered(
    answer: Answer, update: int, origin: Origin, step: Callable[[int], Step | None], check: Callable[[str], float]
) -> float:
    """Read the number that ``answer`` names from the run.

    Args:
        answer: the number to read.
        update: the update at which it is read if the answer does not name one.
        origin: the state of the run before its first update.
        step: function that returns the record of an update.
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
    match prediction.kind:
        case "direction":
            return next(name for name, sign in SIGNS.items() if sign == round(guess))
        case "choice":
            return prediction.choices[round(guess)].text
        case "number" | "ghost":
            return repr(guess)
        case kind:
            raise ValueError(f"{kind!r} is not a kind of prediction")


def right(prediction: Prediction, guess: float, value: float) -> bool:
    """Return whether ``guess`` is correct if the run's number is ``value``.

    A guess is a number, a value of :data:`SIGNS`, or the index of a choice.

    Raises:
        ValueError: the prediction is of an unknown kind.
    """
    if math.isnan(value):
        return False
    match prediction.kind:
        case "direction":
            return round(guess) == direction(prediction, value)
        case "choice":
            return holds(prediction.choices[round(guess)], value)
        case "number" | "ghost":
            return abs(guess - value) <= prediction.within
        case kind:
            raise ValueError(f"{kind!r} is no kind of prediction")


CLOSE = 3.0
"""Maximum error of a number that counts as close, as a multiple of the tolerance for a correct answer."""


def close(prediction: Prediction, guess: float, value: float) -> bool:
    """Return whether the number ``guess`` just misses: not correct, but within ``CLOSE`` times the tolerance.

    Directions and choices are correct or wrong, never close.
    """
    if prediction.kind not in ("number", "ghost") or math.isnan(value):
        return False
    return prediction.within < abs(guess - value) <= CLOSE * prediction.within


def direction(prediction: Prediction, value: float) -> int:
    """Return the direction of a change ``value``: −1, 0 or 1."""
    return 0 if abs(value) <= prediction.within else (1 if value > 0 else -1)


def holds(choice: Choice, value: float) -> bool:
    """Return whether the range of a choice contains ``value``."""
    return choice.low <= value <= choice.high


def as_told(prediction: Prediction, value: float) -> bool:
    """Return whether the run agrees with the lesson's statement about the answer."""
    low, high = prediction.holds
    return low <= value <= high
