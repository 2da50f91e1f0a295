"""Memory layout of the arrays of many runs: the run axis is the first in shape, and the last in memory.

So NumPy adds up rewards, tokens and actions across thousands of runs with one vector instruction each, several times
as fast as along short rows. Arithmetic keeps the layout of what goes in. Gathers and scatters work on flat memory.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_LAST = tuple((*range(1, axes), 0) for axes in range(5))
_FIRST = tuple((axes - 1, *range(axes - 1)) for axes in range(5))
"""The order of the axes by their number, run axis last and first."""
LARGEST_KEPT = 31 * 2**20
"""Bytes of the largest array whose memory glibc can be made to keep."""


def runs_last(x: np.ndarray) -> np.ndarray:
    """``x`` (R, ...), laid out with the runs last in memory."""
    return runs_first_view(np.ascontiguousarray(runs_last_view(x)))


def runs_last_view(x: np.ndarray) -> np.ndarray:
    """``x`` (R, ...) seen as (..., R)."""
    return x.transpose(_LAST[x.ndim])


def runs_first_view(x: np.ndarray) -> np.ndarray:
    """``x`` (..., R) seen as (R, ...)."""
    return x.transpose(_FIRST[x.ndim])


def keep_freed_memory() -> None:
    """Have the memory of freed arrays kept for the next ones, where the allocator is glibc's. Others are not affected.

    By default it is handed back to the system after every update, and the system clears each page before it hands it
    out again, which takes longer than the arithmetic. glibc keeps what is smaller than the largest block that was ever
    freed, up to 32 MiB ("dynamic mmap threshold", mallopt(3)); so one such block is made and freed, without touching
    it.
    """
    np.empty(LARGEST_KEPT, dtype=np.uint8)


def places(context: np.ndarray, tokens: np.ndarray | int, shape: tuple[int, ...]) -> np.ndarray:
    """Place of the entry of each token (R, B, T), chosen in its context, in the memory of a table (R, C, A)."""
    runs, contexts, actions = shape
    entry = tokens if contexts == 1 and isinstance(tokens, np.ndarray) else context * actions + tokens
    return np.asarray(entry * runs + _numbers(runs))


@lru_cache(maxsize=8)
def _numbers(runs: int) -> np.ndarray:
    """The number of each run, (R, 1, 1). Read-only."""
    run = np.arange(runs)[:, None, None]
    run.flags.writeable = False
    return run


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


def filled(values: np.ndarray, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A table of ``shape`` (R, C, A) with the ``values`` (R, B, T) at their ``places``, and 0 elsewhere.

    Values that share a place are equal.
    """
    runs, contexts, actions = shape
    table = np.zeros(runs * contexts * actions)
    table[runs_last_view(places).ravel()] = runs_last_view(values).ravel()
    return runs_first_view(table.reshape(contexts, actions, runs))


@lru_cache(maxsize=64)
def prompt_of(rows: int, prompts: int) -> np.ndarray:
    """The prompt of each completion, (B,). Read-only, for it is the same in every update of a run."""
    prompt = np.arange(rows) // (rows // prompts)
    prompt.flags.writeable = False
    return prompt
