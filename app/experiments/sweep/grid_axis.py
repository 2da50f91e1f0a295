"""An axis on which the values of a swept setting are evenly spaced, in their order.

A grid such as 0, 0.01, ..., 1 is crowded near zero on a linear axis and has no zero on a logarithmic one. On this axis,
all values are equally spaced, and each has a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from grpo_core.config.value_names import worded
from grpo_core.text import tr


def is_number(value: object) -> bool:
    """Return whether ``value`` is a number and not a switch."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True)
class GridAxis:
    """The values of a grid at positions 0, 1, ..., n - 1. Numbers are sorted; words keep their order."""

    values: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, in which case there are further values between two neighbours."""
        return all(map(is_number, self.values))

    def at(self, values: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Return the positions (n,) of ``values`` (n,). NaN outside the grid."""
        if not self.numeric:
            return np.array([self.values.index(v) if v in self.values else np.nan for v in values], dtype=float)
        grid = np.array(self.values, dtype=float)
        places = np.interp(np.asarray(values, dtype=float), grid, np.arange(len(grid)), left=np.nan, right=np.nan)
        return np.asarray(places)

    def nearest(self, x: float) -> int:
        """Return the index of the value nearest to position ``x``."""
        return min(max(round(x), 0), len(self.values) - 1)

    def value(self, x: float) -> Any:
        """Return the value at position ``x``.

        Between two grid values it is rounded to three digits, or to an integer.
        """
        near = self.nearest(x)
        if not self.numeric or abs(x - near) < 1e-9:
            return self.values[near]
        found = float(np.interp(x, np.arange(len(self.values)), np.array(self.values, dtype=float)))
        whole = all(isinstance(value, int) for value in self.values)
        return round(found) if whole else float(f"{found:.3g}")

    def labels(self, width: Callable[[str], float], space: float) -> list[tuple[float, str]]:
        """Return (position, label) of every value, given ``space`` pixels per interval.

        If the labels do not fit on one line, every other one is moved to a second line, and if necessary leading zeros
        are dropped. If the labels are still too wide, some are omitted, but never the first.
        """
        full = [name(value) for value in self.values]
        short = [text.removeprefix("0") if text.startswith("0.") else text for text in full]
        for texts, lines in ((full, 1), (full, 2), (short, 2)):
            if all(_fits(texts[line::lines], width, lines * space) for line in range(lines)):
                lowered = ["\n" * (place % lines) + text for place, text in enumerate(texts)]
                return list(zip(np.arange(len(texts), dtype=float).tolist(), lowered, strict=True))
        texts = short
        kept: list[tuple[float, str]] = []
        end = -np.inf
        for place, text in enumerate(texts):
            half = width(text) / 2
            if place * space - half >= end:
                kept.append((float(place), text))
                end = place * space + half + GAP
        return kept


GAP = 4.0
"""Gap in pixels between two labels."""


def _fits(texts: Sequence[str], width: Callable[[str], float], space: float) -> bool:
    wide = [width(text) for text in texts]
    return all((a + b) / 2 + GAP <= space for a, b in pairwise(wide))


def name(value: object) -> str:
    """Return a short label for the value of a setting."""
    return tr("none", "value") if value is None else worded(value)


def grid_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the distinct values. Numbers are sorted in ascending order."""
    once = dict.fromkeys(values)
    return tuple(sorted(once) if all(map(is_number, once)) else once)
