"""Rewards of several reward functions: one array of them, and their weighted sum as TRL computes it."""

from __future__ import annotations

import numpy as np


def stacked(rows: list[np.ndarray | None]) -> np.ndarray | None:
    """The rows as one array. None where one is missing or they are of different lengths."""
    known = [row for row in rows if row is not None]
    return np.array(known) if len(known) == len(rows) and len({len(row) for row in known}) == 1 else None


def weighted(parts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sum of the reward functions (B,). Functions that gave nothing count 0, NaN where none gave anything."""
    weights = weights if len(weights) == parts.shape[1] else np.ones(parts.shape[1])
    total = np.nansum(parts * weights, axis=1)
    return np.where(np.isnan(parts).all(axis=1), np.nan, total)
