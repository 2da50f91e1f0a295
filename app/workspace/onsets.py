"""Onsets in a growing series, found once and then looked up."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np

from app.plotting.pyramid import Pyramid


class Onsets:
    """The updates at which something begins in a series. As the series grows, only its new values are examined.

    Args:
        begins: takes values (n,) and what it returned for the preceding ones; returns the indices at which it begins,
            and what to pass with the next values.
        before: what to pass with the first values.
    """

    def __init__(
        self, series: Pyramid, begins: Callable[[np.ndarray, Any], tuple[np.ndarray, Any]], before: Any
    ) -> None:
        self._series = series
        self._begins = begins
        self._first = self._last = before
        self._seen = 0
        self._places = array("q")

    def after(self, step: int) -> int | None:
        self._look()
        place = bisect_right(self._places, step)
        return self._places[place] if place < len(self._places) else None

    def before(self, step: int) -> int | None:
        self._look()
        place = bisect_left(self._places, step)
        return self._places[place - 1] if place else None

    def begin_anew(self) -> None:
        """Examine the entire series again because earlier values have changed."""
        self._last, self._seen, self._places = self._first, 0, array("q")

    def _look(self) -> None:
        if len(self._series) > self._seen:
            places, self._last = self._begins(self._series.values[self._seen :], self._last)
            self._places.frombytes((places + self._seen + 1).astype(np.int64).tobytes())
            self._seen = len(self._series)


def rises_past(values: np.ndarray, before: bool, level: float = 0.0) -> tuple[np.ndarray, bool]:
    """Find where a series rises above ``level``, from at most that or from an unknown value.

    ``before`` is whether the preceding value was above it.
    """
    with np.errstate(invalid="ignore"):
        above = np.concatenate(([before], values > level))
    return np.flatnonzero(above[1:] & ~above[:-1]), bool(above[-1])


def changes(values: np.ndarray, before: float) -> tuple[np.ndarray, float]:
    """Find where a series changes its value, which was ``before``, or NaN at the start. That is not a change."""
    then = np.concatenate(([before], values[:-1]))
    return np.flatnonzero((values != then) & ~np.isnan(values) & ~np.isnan(then)), float(values[-1])
