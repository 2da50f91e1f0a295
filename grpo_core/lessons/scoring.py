"""Predictions held against the live run: the number they are about, and whether they were right."""

from __future__ import annotations

import math
from collections.abc import Callable

from grpo_core.explain import Numbers, Quantity
from grpo_core.lessons.lesson import Answer, Choice, Prediction
from grpo_core.metrics import at_start
from grpo_core.record import Origin, Step

SIGNS = {"down": -1, "same": 0, "up": 1}
"""The three directions."""


def answered(
    answer: Answer, update: int, origin: Origin, step: Callable[[int], Step | None], check: Callable[[str], float]
) -> float:
    """The number that ``answer`` names, from the run itself.

    Args:
        answer: which number.
        update: the update it is read at, where the answer does not say.
        origin: the run before its first update.
        step: the record of an update.
        check: the interactive's own numbers.

    Returns:
        The number, or its change; NaN where the run does not have it.
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


def right(prediction: Prediction, guess: float, value: float) -> bool:
    """Whether ``guess`` was right where the run says ``value``.

    A guess is a number, one of :data:`SIGNS`, or the place of a choice.

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
"""A number is close up to this many times the distance at which it still is right."""


def close(prediction: Prediction, guess: float, value: float) -> bool:
    """Whether a number ``guess`` just misses: not right, but no further off than ``CLOSE`` times what still counts.

    Directions and choices are right or wrong, never close.
    """
    if prediction.kind not in ("number", "ghost") or math.isnan(value):
        return False
    return prediction.within < abs(guess - value) <= CLOSE * prediction.within


def direction(prediction: Prediction, value: float) -> int:
    """−1, 0 or 1: which way a change ``value`` goes."""
    return 0 if abs(value) <= prediction.within else (1 if value > 0 else -1)


def holds(choice: Choice, value: float) -> bool:
    """Whether a choice is the right one."""
    return choice.low <= value <= choice.high


def as_told(prediction: Prediction, value: float) -> bool:
    """Whether the run agrees with the sentence that the lesson says about it."""
    low, high = prediction.holds
    return low <= value <= high
