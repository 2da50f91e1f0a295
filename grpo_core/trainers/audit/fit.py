"""Fitting of a change's parameters: by least squares if the loss is linear in them, otherwise by Gauss–Newton steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grpo_core.trainers.changes.change import Parameters
from grpo_core.trainers.changes.numbers import Numbers

STARTS, ROUNDS, HALVINGS = 2, 14, 4
"""Number of starting points that are followed, number of steps from each, and maximum number of halvings of a step.

A step is halved if it does not improve the fit.
"""
SLOW = 0.98
"""Fitting stops when a step leaves more than this share of the sum of squares."""
DIGITS = (1, 2, 3, 4)
"""Numbers of digits to which a fitted number is rounded. The smallest that still explains the numbers is used."""
ROUND = 2
"""A number with at most this many digits may have been chosen by a person."""
MOST = 64
"""Maximum integer that is plausible as a setting, for example as the number of processes or the group size.

Its reciprocal is plausible, too. Such numbers count as chosen by a person even if they have more digits than
:data:`ROUND`.
"""

Residuals = Callable[[Parameters], np.ndarray | None]
"""Differences relative to the rounding tolerance, (K,). None if they cannot be computed."""


def followed(residuals: Residuals, starts: Sequence[Parameters], low: float, high: float) -> Parameters:
    """Return the parameters with the smallest sum of squares, found by Gauss–Newton steps from the best of ``starts``,
    and further steps from the best result.
    """
    scored = sorted((squares(residuals(start)), start) for start in starts)
    found = [_descended(residuals, start, low, high) for _, start in scored[:STARTS]]
    return _descended(residuals, min(found, key=lambda p: squares(residuals(p))), low, high)


def squares(residuals: np.ndarray | None) -> float:
    if residuals is None:
        return np.inf
    total = float(residuals @ residuals) if np.isfinite(residuals).all() else np.inf
    return total if np.isfinite(total) else np.inf


def _descended(residuals: Residuals, start: Parameters, low: float, high: float) -> Parameters:
    now, here = np.array(start), residuals(start)
    for _ in range(ROUNDS):
        if here is None or not np.isfinite(here).all() or np.abs(here).max(initial=0.0) < 1e-3:
            break
        slopes = []
        for k in range(len(now)):
            nudged = now.copy()
            nudged[k] += 1e-5 * max(abs(now[k]), 0.01)
            there = residuals(tuple(nudged))
            slopes.append(np.zeros_like(here) if there is None else (there - here) / (nudged[k] - now[k]))
        jacobian = np.stack(slopes, axis=1)
        if not np.isfinite(jacobian).all() or not jacobian.any():
            break
        step = np.linalg.lstsq(jacobian, -here, rcond=None)[0]
        for _ in range(HALVINGS):
            tried = np.clip(now + step, low, high)
            there = residuals(tuple(tried))
            if squares(there) < squares(here):
                break
            step = step / 2
        else:
            break
        slow = squares(there) > SLOW * squares(here)
        now, here = tried, there
        if slow:
            break
    return tuple(float(x) for x in now)


def factor(numbers: Sequence[Numbers], columns: Sequence[int]) -> float | None:
    """Return the factor by which the coefficients of these ``columns`` are off, by least squares over all numbers.

    None if the columns do not determine it.
    """
    weights = np.concatenate([1.0 / np.maximum(each.allowed, 1e-300) for each in numbers])
    parts = [each.columns * each.coefficients for each in numbers]
    moved = np.concatenate([part[:, list(columns)].sum(axis=1) for part in parts]) * weights
    rest = [i for i in range(parts[0].shape[1]) if i not in columns]
    left = np.concatenate([n.theirs - part[:, rest].sum(axis=1) for n, part in zip(numbers, parts, strict=True)])
    size = float(moved @ moved)
    if not np.isfinite(size) or size <= 1.0 or not np.isfinite(left).all():
        return None
    return float(moved @ (left * weights)) / size


def rounded(values: Parameters, explains: Callable[[Parameters], bool]) -> Parameters:
    """Return ``values`` with the fewest digits that still explain the numbers, or unchanged if none do."""
    nothing = (0.0,) * len(values)
    if explains(nothing):
        return nothing
    for digits in DIGITS:
        tried = tuple(float(f"{value:.{digits}g}") for value in values)
        if explains(tried):
            return tried
    parts = tuple(1.0 / round(1.0 / value) if value and abs(value) < 1 else float(round(value)) for value in values)
    return parts if explains(parts) else values


def is_round(values: Parameters) -> bool:
    """Return whether a person may have chosen these numbers: few digits, a small integer or its reciprocal."""
    return all(_written(value) for value in values)


def _written(value: float) -> bool:
    if value == float(f"{value:.{ROUND}g}"):
        return True
    whole = value if abs(value) >= 1 else 1.0 / value
    return abs(whole) <= MOST and abs(whole - round(whole)) < 1e-9 * abs(whole)
