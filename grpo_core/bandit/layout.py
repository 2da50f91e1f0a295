"""Memory layout of arrays of many runs, in which the run axis is first in the shape but last in memory.

NumPy then sums over rewards, tokens and actions with vector instructions across thousands of runs, several times faster
than along short rows. Arithmetic preserves the layout of its inputs. Gathers and scatters operate on flat memory.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache

import numpy as np

_LAST = tuple((*range(1, axes), 0) for axes in range(5))
_FIRST = tuple((axes - 1, *range(axes - 1)) for axes in range(5))
"""Axis orders, indexed by the number of axes, that move the run axis to the end and back to the front."""
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Numbers of two options of glibc's allocator, from malloc.h."""


def runs_last(x: np.ndarray) -> np.ndarray:
    """Copy ``x`` (R, ...) so that the runs are last in memory."""
    return runs_first_view(np.ascontiguousarray(runs_last_view(x)))


def runs_last_view(x: np.ndarray) -> np.ndarray:
    """Return a view of ``x`` (R, ...) as (..., R)."""
    return x.transpose(_LAST[x.ndim])


def runs_first_view(x: np.ndarray) -> np.ndarray:
    """Return a view of ``x`` (..., R) as (R, ...)."""
    return x.transpose(_FIRST[x.ndim])


def keep_freed_memory() -> None:
    """Make glibc's allocator keep the memory of freed arrays for reuse. Other allocators are not affected.

    By default the memory is returned to the system after every update, and the system clears each page before handing
    it out again, which takes longer than the arithmetic. Without separate mappings, which are always returned, and
    without trimming of the heap (mallopt(3)), a process keeps the memory that it needed most. For processes that
    compute, not for the window's.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def places(context: np.ndarray, tokens: np.ndarray | int, shape: tuple[int, ...]) -> np.ndarray:
    """Return the flat index of each token (R, B, T), sampled in its context, in the memory of a table (R, C, A)."""
    runs, contexts, actions = shape
    entry = tokens if contexts == 1 and isinstance(tokens, np.ndarray) else context * actions + tokens
    return np.asarray(entry * runs + _numbers(runs))


@lru_cache(maxsize=8)
def _numbers(runs: int) -> np.ndarray:
    """Return the index of each run, (R, 1, 1). Read-only."""
    run = np.arange(runs)[:, None, None]
    run.flags.writeable = False
    return run


def gather(table: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Gather the entries of ``table`` (R, C, A) at the flat indices ``places`` (R, B, T), as (R, B, T)."""
    return taken(runs_last_view(table), places)


def taken(shared: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Gather the entries of ``shared``, an array common to all runs, at the flat indices ``places`` (R, ...)."""
    return runs_first_view(shared.take(runs_last_view(places)))


def scatter(values: np.ndarray, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum the ``values`` (R, B, T) with the same flat index into a table of ``shape`` (R, C, A)."""
    runs, contexts, actions = shape
    total = np.bincount(
        runs_last_view(places).ravel(), weights=runs_last_view(values).ravel(), minlength=runs * contexts * actions
    )
    return runs_first_view(total.reshape(contexts, actions, runs))


def filled(values: np.ndarray, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Create a table of ``shape`` (R, C, A) with the ``values`` (R, B, T) at the flat indices ``places``, and 0
    elsewhere.

    Values with the same index must be equal.
    """
    runs, contexts, actions = shape
    table = np.zeros(runs * contexts * actions)
    table[runs_last_view(places).ravel()] = runs_last_view(values).ravel()
    return runs_first_view(table.reshape(contexts, actions, runs))


@lru_cache(maxsize=64)
def prompt_of(rows: int, prompts: int) -> np.ndarray:
    """Return the prompt of each completion, (B,). Read-only, since it is the same in every update of a run."""
    prompt = np.arange(rows) // (rows // prompts)
    prompt.flags.writeable = False
    return prompt
