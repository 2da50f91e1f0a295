"""Rewards of several reward functions: a stacked array, and their weighted sum as computed by TRL."""

from __future__ import annotations

import numpy as np


def stacked(rows: list[np.ndarray | None]) -> np.ndarray | None:
    """Stack the rows into one array. None if one is missing or their lengths differ."""
    known = [row for row in rows if row is not None]
    return np.array(known) if len(known) == len(rows) and len({len(row) for row in known}) == 1 else None


def weighted(parts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum of the reward functions, (B,). A missing value counts as 0. NaN if all are missing."""
    weights = weights if len(weights) == parts.shape[1] else np.ones(parts.shape[1])
    total = np.nansum(parts * weights, axis=1)
    return np.where(np.isnan(parts).all(axis=1), np.nan, total)
