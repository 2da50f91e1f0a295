"""Onsets in a growing series, found once and then looked up."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable

import numpy as np

from app.plotting.pyramid import Pyramid


class Onsets:
    """The updates at which a series enters a state. As the series grows, only its new values are examined.

    ``begins`` takes values (n + 1,) and returns whether the state begins at each of the last n, boolean (n,). The
    first value is the one before them (NaN before the first update).
    """

    def __init__(self, series: Pyramid, begins: Callable[[np.ndarray], np.ndarray]) -> None:
        self._series = series
        self._begins = begins
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
        self._seen, self._places = 0, array("q")

    def _look(self) -> None:
        seen = self._seen
        if len(self._series) > seen:
            known = self._series.values[max(seen - 1, 0) :]
            here = known if seen else np.concatenate(([np.nan], known))
            self._places.frombytes((np.flatnonzero(self._begins(here)) + seen + 1).astype(np.int64).tobytes())
            self._seen = len(self._series)


def rises_past(values: np.ndarray, level: float = 0.0) -> np.ndarray:
    """Return where a series rises above ``level``, from at most that or from an unknown value."""
    with np.errstate(invalid="ignore"):
        above = values > level
    return np.asarray(above[1:] & ~above[:-1])


def changes(values: np.ndarray) -> np.ndarray:
    """Return where a series changes its value. The first value never counts as a change."""
    now, then = values[1:], values[:-1]
    return np.asarray((now != then) & ~np.isnan(now) & ~np.isnan(then))
