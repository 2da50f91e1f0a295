"""Rounding: how far a number can differ between two computations of it, on one kind of processor or on two.

Vector units, BLAS kernels and compilers add numbers in different orders. So what is equal bit for bit on one kind of
processor is equal on another only up to the tolerance given here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

import numpy as np

DOUBLE, SINGLE = 1e-9, 1e-5
"""Relative accuracy to expect of numbers computed from records in float64 and in float32."""
SMALLEST = {DOUBLE: sys.float_info.min, SINGLE: 1.2e-38}
"""The smallest normal numbers of float64 and float32. A computation may return 0 for anything smaller."""
LEAST = 1e-3
"""Largest gradient that counts as 0, as a multiple of the accuracy."""


def precision_of(arrays: Iterable[np.ndarray | None]) -> float:
    """Return the relative accuracy that the dtypes of ``arrays`` allow: :data:`DOUBLE` or :data:`SINGLE`."""
    return DOUBLE if all(x is None or x.dtype == np.float64 for x in arrays) else SINGLE


def vanishes(gradient: np.ndarray, precision: float, beside: float = 0.0) -> bool:
    """Return whether a gradient is 0 but for rounding.

    Args:
        gradient: the gradient, of any shape.
        precision: :data:`DOUBLE` or :data:`SINGLE`.
        beside: what rounding can add to it because its summands cancel; negative to be sure that it can be 0.
    """
    return bool(np.abs(gradient).max(initial=0.0) <= precision * LEAST + beside)


def tolerance(precision: float, *magnitudes: float) -> float:
    """Return the largest difference between two computations of a number that rounding explains.

    Args:
        precision: :data:`DOUBLE` or :data:`SINGLE`.
        magnitudes: the number in both computations, and the size of the summands that may cancel in it. Signs and
            values that are not finite are ignored.
    """
    size = max((abs(x) for x in magnitudes if math.isfinite(x)), default=0.0)
    return max(precision * size, SMALLEST[precision])
