"""Moving numbers between packed tokens (``grpo_core.lm.packing``) and the tables in which they attend to each other."""

from __future__ import annotations

import numpy as np


def merged(found: np.ndarray) -> np.ndarray:
    """Outputs of the heads of each token, side by side: (rows, H, columns, d) -> (rows columns, D)."""
    rows, heads, columns, each = found.shape
    return np.asarray(found.transpose(0, 2, 1, 3).reshape(rows * columns, heads * each))


def gathered(found: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(rows, H, columns, d) -> what lies in these cells, (n, D)."""
    return picked(found.transpose(0, 2, 1, 3), cells).reshape(len(cells), -1)


def picked(table: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(rows, columns, ...) -> (n, ...), what lies in these cells."""
    return np.asarray(table[np.divmod(cells, table.shape[1])])


def placed(values: np.ndarray, cells: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``values`` (n, H, d) in these cells of a table (rows, columns, H, d), 0 elsewhere. As (rows, H, columns, d)."""
    table = np.zeros(shape, dtype=values.dtype)
    table.reshape(-1, *shape[2:])[cells] = values
    return table.transpose(0, 2, 1, 3)


def add_rows(total: np.ndarray, index: np.ndarray, rows: np.ndarray) -> None:
    """Adds each of ``rows`` (n, D) to the row of ``total`` that ``index`` (n,) names."""
    order = np.argsort(index, kind="stable")
    named, first = np.unique(index[order], return_index=True)
    total[named] += np.add.reduceat(rows[order], first)
