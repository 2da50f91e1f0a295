"""Conversion between packed tokens (``grpo_core.lm.packing``) and the tables in which they attend to each other."""

from __future__ import annotations

import numpy as np


def merged(found: np.ndarray) -> np.ndarray:
    """Concatenate the outputs of the heads for each token: (rows, H, columns, d) -> (rows columns, D)."""
    rows, heads, columns, each = found.shape
    return np.asarray(found.transpose(0, 2, 1, 3).reshape(rows * columns, heads * each))


def gathered(found: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Gather cells of (rows, H, columns, d), with the heads concatenated, (n, D)."""
    return picked(found.transpose(0, 2, 1, 3), cells).reshape(len(cells), -1)


def picked(table: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Gather cells of (rows, columns, ...) as (n, ...)."""
    return np.asarray(table[np.divmod(cells, table.shape[1])])


def placed(values: np.ndarray, cells: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Scatter ``values`` (n, H, d) to cells of a table, 0 elsewhere, and return it as (rows, H, columns, d)."""
    table = np.zeros(shape, dtype=values.dtype)
    table.reshape(-1, *shape[2:])[cells] = values
    return table.transpose(0, 2, 1, 3)


def add_rows(total: np.ndarray, index: np.ndarray, rows: np.ndarray) -> None:
    """Add each of ``rows`` (n, D) to the row of ``total`` given by ``index`` (n,)."""
    order = np.argsort(index, kind="stable")
    named, first = np.unique(index[order], return_index=True)
    total[named] += np.add.reduceat(rows[order], first)
