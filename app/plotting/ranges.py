"""Layout of plots: axis ranges that do not jump, ticks at round numbers, and labels that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
SPARE = 0.4
"""Share of an axis below which its data must fall before the axis shrinks."""


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least ``least`` (> 0)."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in ROUND if digit * power >= least * (1 - 1e-9))


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Return round numbers in [low, high]: at least two, and not many more than ``most``.

    If ``whole`` is set, they are integers, and there can be fewer than two.
    """
    if not (high > low and math.isfinite(high - low)):
        return []
    least = (high - low) / max(most - 1, 1)
    while True:
        step = round_step(least)
        step = max(math.ceil(step), 1) if whole else step
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last > first or (whole and step == 1):
            return [n * step for n in range(first, last + 1)]
        least = step / 2.1


def held_range(
    low: float, high: float, current: tuple[float, float] | None, *, tight: bool = False
) -> tuple[float, float]:
    """Return a range of round numbers around the data [low, high], or ``current`` while it fits.

    The range widens as soon as the data exceed it, and narrows once they fill less than 40 % of it. If ``tight`` is
    set, a new range starts exactly at ``low``, as for an axis of updates.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return current or (0.0, 1.0)
    if (
        current is not None
        and current[0] <= low
        and high <= current[1]
        and high - low >= SPARE * (current[1] - current[0])
    ):
        return current
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        space = 0.5 * abs(low) if abs(low) > 1e-290 else 0.5
        low, high = (low, low + 2 * space) if tight else (low - space, high + space)
    step = round_step((high - low) / 5)
    fitting = (low if tight else math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step)
    # Rounding can give a range as wide as the current one. Keeping the current one then avoids a shift.
    fits = current is not None and current[0] <= low and high <= current[1]
    return current if current is not None and fits and fitting[1] - fitting[0] >= current[1] - current[0] else fitting


def rung(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is at most ``most`` (> 0)."""
    power: float = 10.0 ** math.floor(math.log10(most) + 1e-9)
    return next(digit * power for digit in (5.0, 2.0, 1.0) if digit * power <= most * (1 + 1e-9))


def lane_range(
    low: float, high: float, current: tuple[float, float] | None, *, symmetric: bool = False, cap: float | None = None
) -> tuple[float, float]:
    """Return a range around 0 and the data [low, high] whose ends are round numbers, or ``current`` while it fits.

    The larger side of a new range is filled to at least two thirds. The range widens as soon as the data exceed it, and
    narrows once they fill less than 40 % of it.

    Args:
        symmetric: whether both sides have the same length.
        cap: maximum of the upper end, or None.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return current or (0.0, 1.0)
    low, high = min(low, 0.0), max(high, 0.0)
    far = max(-low, high)
    if current is not None:
        inside = current[0] <= low and high <= current[1]
        if inside and (far == 0 or far >= SPARE * max(-current[0], current[1])):
            return current
    if far < 1e-12:
        return (-1.0, 1.0) if symmetric else (0.0, 1.0)
    step = rung(far / 2)
    top, bottom = math.ceil(high / step - 1e-9) * step, math.floor(low / step + 1e-9) * step
    if symmetric:
        top = max(top, -bottom)
        bottom = -top
    return bottom, top if cap is None else min(top, cap)


def lane_ticks(low: float, high: float, most: int) -> list[float]:
    """Return 0 and other multiples of 1, 2 or 5 times a power of ten in [low, high].

    There are at most ``most`` ticks, or 0 and one tick on each side where it fits.
    """
    step = rung((high - low) / max(most - 1, 1))
    while True:
        ticks = [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
        if len(ticks) < 2:
            step = rung(max(high, -low))
            return [n * step for n in (-1, 0, 1) if low <= n * step <= high]
        if len(ticks) <= most:
            return ticks
        step = rung(2.6 * step)


def push_apart(wanted: Sequence[float], size: float, low: float, high: float) -> list[float | None]:
    """Return centres of labels of height ``size`` within [low, high], without overlap and near ``wanted``.

    The order is kept, and the sum of squared shifts is minimal (pool adjacent violators). If not all labels fit, the
    centres of the last ones are None.
    """
    space = max(int((high - low) / size + 1e-9), 0) if size > 0 else len(wanted)
    kept = sorted(range(min(space, len(wanted))), key=lambda i: wanted[i])
    blocks: list[tuple[float, int]] = []
    for rank, i in enumerate(kept):
        # Minus rank * size, the centres only need to be in ascending order. A block has the mean of its members.
        block = (min(max(wanted[i], low + size / 2), high - size / 2) - rank * size, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, count = blocks.pop()
            block = ((mean * count + block[0] * block[1]) / (count + block[1]), count + block[1])
        blocks.append(block)
    flat = [mean for mean, count in blocks for _ in range(count)]
    top, bottom = low + size / 2, high - size / 2 - (len(kept) - 1) * size
    starts: list[float | None] = [None] * len(wanted)
    for rank, i in enumerate(kept):
        starts[i] = min(max(flat[rank], top), bottom) + rank * size
    return starts
