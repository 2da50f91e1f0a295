"""Scoring of predictions against the live run."""

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
    """Read the number that ``answer`` names from the run.

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
    """Whether ``guess`` is right if the run gives ``value``.

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
"""A number counts as close up to this multiple of the tolerance for a right answer."""


def close(prediction: Prediction, guess: float, value: float) -> bool:
    """Whether a number ``guess`` just misses: not right, but no further off than ``CLOSE`` times what still counts.

    Directions and choices are right or wrong, never close.
    """
    if prediction.kind not in ("number", "ghost") or math.isnan(value):
        return False
    return prediction.within < abs(guess - value) <= CLOSE * prediction.within


def direction(prediction: Prediction, value: float) -> int:
    """Direction of a change ``value``: −1, 0 or 1."""
    return 0 if abs(value) <= prediction.within else (1 if value > 0 else -1)


def holds(choice: Choice, value: float) -> bool:
    """Whether the range of a choice contains ``value``."""
    return choice.low <= value <= choice.high


def as_told(prediction: Prediction, value: float) -> bool:
    """Whether the run agrees with the lesson's sentence about the answer."""
    low, high = prediction.holds
    return low <= value <= high
