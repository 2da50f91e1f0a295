"""Operations missing from the Array API standard. No other module depends on a particular array library."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import array_api_compat
import numpy as np
from array_api_compat import device, is_torch_array

Array = Any
"""An array of any library that follows the Array API standard (NumPy, torch, array_api_strict)."""


class Recorded:
    """Base class of arrays without numbers, on which operations are recorded instead of computed."""


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return NumPy's reduction by ``ufunc`` (such as ``sum`` for ``add``) without the overhead of NumPy's wrappers."""

    def reduced(x: np.ndarray, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
        return ufunc.reduce(x, axis=axis, keepdims=keepdims)

    return reduced


_NUMPY = SimpleNamespace(
    **{
        **vars(np),
        "any": _reduction(np.logical_or),
        "max": _reduction(np.maximum),
        "min": _reduction(np.minimum),
        "sum": _reduction(np.add),
    }
)
"""NumPy's namespace with faster reductions. NumPy 2 follows the standard, but the wrappers of its own reductions take
longer than the arithmetic on a small array.
"""


def array_namespace(*arrays: Array) -> Array:
    """Return the Array API namespace of ``arrays``, with a fast path for NumPy."""
    for x in arrays:
        if type(x) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return _NUMPY


def stop_gradient(x: Array) -> Array:
    """Return ``x`` as a constant: torch detaches it, libraries without autograd return it unchanged."""
    return x.detach() if is_torch_array(x) else x


def to_numpy(x: Array) -> np.ndarray:
    """Return ``x`` as a NumPy array, off the autograd tape and on the CPU."""
    return x.detach().cpu().numpy() if is_torch_array(x) else np.asarray(x)


def from_numpy(x: np.ndarray | float, like: Array) -> Array:
    """Return ``x``, a NumPy array or a number, as an array of the same library, dtype and device as ``like``."""
    if type(like) is np.ndarray:
        return np.asarray(x, like.dtype)
    return array_namespace(like).asarray(x, dtype=like.dtype, device=device(like))


def as_array(x: Any, like: Array) -> Array:
    """Convert ``x``, a number or an array of ``like``'s library, to ``like``'s dtype. Numbers go to its device."""
    if not constant(x):
        return x if x.dtype == like.dtype else array_namespace(like).astype(x, like.dtype)
    return from_numpy(x, like)


def full(shape: tuple[int, ...], value: Any, like: Array) -> Array:
    """Return an array of ``like``'s library and dtype filled with ``value``, a number or an array to broadcast."""
    xp = array_namespace(like)
    if not constant(value):
        return value if value.shape == shape else xp.broadcast_to(value, shape)
    if type(like) is np.ndarray:
        return np.full(shape, value, like.dtype)
    return xp.full(shape, value, dtype=like.dtype, device=device(like))


def numeric(value: Any, like: Array) -> Any:
    """Prepare a numeric field for arithmetic with ``like``, whose library and dtype arrays of run axes get."""
    return value if constant(value) else as_array(value, like)


def clamp(x: Array, low: Any = None, high: Any = None) -> Array:
    """Clamp ``x`` to ``low`` and ``high``, which are numbers, arrays, or None for no bound. NaN stays NaN.

    Exactly at a bound the gradient is passed in full, as in torch.clamp; minimum and maximum would halve it there.
    """
    xp = array_namespace(x)
    if low is not None:
        x = xp.where(x < low, numeric(low, x), x)
    return x if high is None else xp.where(x > high, numeric(high, x), x)


def at_least_one(count: Any) -> Any:
    """Replace a count of 0 (a number or an array) with 1, so that it can be a divisor."""
    if constant(count):
        return max(count, 1.0)
    if type(count) is np.ndarray:
        return np.fmax(count, 1.0)  # which takes the 1 next to a NaN, as below
    xp = array_namespace(count)
    return xp.where(count > 1, count, 1.0)


def constant(value: Any) -> bool:
    """Return whether ``value`` is a plain number rather than an array with run axes."""
    return isinstance(value, (int, float))


def is_zero(value: Any) -> bool:
    """Return whether a numeric field is 0, in every run if it has one value per run. False if it is only recorded."""
    if constant(value):
        return bool(value == 0)
    if isinstance(value, Recorded):
        return False
    return not bool(array_namespace(value).any(value != 0))
