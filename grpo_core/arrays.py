"""The only module that knows array libraries: what the Array API standard leaves out."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
from array_api_compat import device, is_torch_array

__all__ = ["Array", "array_namespace", "as_array", "clamp", "constant", "is_zero", "ones", "stop_gradient", "to_numpy"]

Array = Any
"""An array of any library that follows the Array API standard (NumPy, torch, array_api_strict)."""


def array_namespace(*arrays: Array) -> Array:
    """The library of ``arrays``, as the standard has it; NumPy 2 follows it by itself, and is quicker to recognise."""
    for x in arrays:
        if type(x) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return np


def stop_gradient(x: Array) -> Array:
    """``x`` as a constant: torch detaches it, libraries without autograd return it unchanged."""
    return x.detach() if is_torch_array(x) else x


def to_numpy(x: Array) -> np.ndarray:
    """``x`` as a NumPy array, off the autograd tape and on the CPU."""
    return x.detach().cpu().numpy() if is_torch_array(x) else np.asarray(x)


def as_array(x: Any, like: Array) -> Array:
    """``x`` (a number, or an array of ``like``'s library) as an array of ``like``'s dtype, numbers on its device."""
    xp = array_namespace(like)
    if constant(x):
        return xp.asarray(x, dtype=like.dtype, device=device(like))
    return x if x.dtype == like.dtype else xp.astype(x, like.dtype)


def ones(shape: tuple[int, ...], like: Array) -> Array:
    """Ones of ``like``'s library, dtype and device."""
    return array_namespace(like).ones(shape, dtype=like.dtype, device=device(like))


def clamp(x: Array, low: Any = None, high: Any = None) -> Array:
    """``x`` held between ``low`` and ``high`` (numbers or arrays; None: no bound); NaN stays NaN.

    At a bound the gradient flows in full, as torch.clamp has it; minimum and maximum would halve it there.
    """
    xp = array_namespace(x)
    if low is not None:
        x = xp.where(x < low, as_array(low, x), x)
    return x if high is None else xp.where(x > high, as_array(high, x), x)


def constant(value: Any) -> bool:
    """Whether ``value`` is a plain number rather than an array with run axes."""
    return isinstance(value, (int, float))


def is_zero(value: Any) -> bool:
    """Whether a numeric field is 0, in every run if it holds one value a run."""
    return value == 0 if constant(value) else not bool(array_namespace(value).any(value != 0))
