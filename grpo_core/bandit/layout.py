"""How the arrays of many runs lie in memory: the run axis is the first in shape, and the last in memory.

So NumPy adds up rewards, tokens and actions across thousands of runs with one vector instruction each, several times
as fast as along short rows. Arithmetic keeps the layout of what goes in. Gathers and scatters work on flat memory.
"""

from __future__ import annotations

import numpy as np


def runs_last(x: np.ndarray) -> np.ndarray:
    """``x`` (R, ...), laid out with the runs last in memory."""
    return runs_first_view(np.ascontiguousarray(runs_last_view(x)))


def runs_last_view(x: np.ndarray) -> np.ndarray:
    """``x`` (R, ...) seen as (..., R)."""
    return x.transpose(*range(1, x.ndim), 0)


def runs_first_view(x: np.ndarray) -> np.ndarray:
    """``x`` (..., R) seen as (R, ...)."""
    return x.transpose(-1, *range(x.ndim - 1))


def places(context: np.ndarray, tokens: np.ndarray | int, shape: tuple[int, ...]) -> np.ndarray:
    """Where the entry of each token (R, B, T), chosen in its context, lies in the memory of a table (R, C, A)."""
    runs, contexts, actions = shape
    run = np.arange(runs)[:, None, None]
    if contexts == 1 and isinstance(tokens, np.ndarray):
        return np.asarray(tokens * runs + run)
    return np.asarray((context * actions + tokens) * runs + run)


def gather(table: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The entries of ``table`` (R, C, A) at ``places`` (R, B, T), as (R, B, T)."""
    return taken(runs_last_view(table), places)


def taken(shared: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The entries of an array that all runs share, at flat ``places`` (R, ...), as (R, ...)."""
    return runs_first_view(shared.take(runs_last_view(places)))


def scatter(values: np.ndarray, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The sum of the ``values`` (R, B, T) that share one of the ``places``, as a table of ``shape`` (R, C, A)."""
    runs, contexts, actions = shape
    total = np.bincount(
        runs_last_view(places).ravel(), weights=runs_last_view(values).ravel(), minlength=runs * contexts * actions
    )
    return runs_first_view(total.reshape(contexts, actions, runs))
