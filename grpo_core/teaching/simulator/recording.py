"""Arrays of the Array API standard that record the operations on them, to be computed later in another language.

A function that follows the standard is called once with recorded arrays of fixed shapes. It leaves a list of
operations, each with its arguments: earlier results, or numbers. An operation that was already recorded with the same
arguments is not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from grpo_core.arrays import Array, Recorded

Shape = tuple[int, ...]
Argument = int | float | bool | str | Shape
"""A number, the name of an earlier result, or a list of axes or sizes."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A recorded operation.

    Attributes:
        function: its name, as in the standard.
        arguments: names of earlier results, numbers, axes and sizes, in the order of the standard's parameters.
    """

    function: str
    arguments: tuple[Argument, ...]


@dataclass(kw_only=True, eq=False)
class Recording:
    """The operations recorded so far, by the names of their results. It also stands for the arrays' device."""

    operations: dict[str, Operation] = field(default_factory=dict)
    _known: dict[Operation, RecordedArray] = field(default_factory=dict)

    def array(self, name: str, shape: Shape, dtype: Any = np.float64) -> RecordedArray:
        """Return the array called ``name``, whose numbers are given when the operations are computed."""
        return RecordedArray(self, name, shape, np.dtype(dtype))

    def result(self, function: str, arguments: Sequence[Any], shape: Shape, dtype: Any = np.float64) -> RecordedArray:
        """Record ``function`` with ``arguments``, and return its result."""
        named = tuple(one.name if isinstance(one, RecordedArray) else one for one in arguments)
        operation = Operation(function=function, arguments=named)
        if operation not in self._known:
            name = f"v{len(self.operations)}"
            self.operations[name] = operation
            self._known[operation] = self.array(name, shape, dtype)
        return self._known[operation]


class RecordedArray(Recorded):
    """An array without numbers.

    Attributes:
        device: the recording that it belongs to.
        shape, dtype: as in the standard.
    """

    def __init__(self, device: Recording, name: str, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.device, self.name, self.shape, self.dtype = device, name, shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return NAMESPACE

    def __bool__(self) -> bool:
        raise TypeError("a recorded array has no numbers, so nothing can depend on them")

    def __getitem__(self, key: Any) -> RecordedArray:
        """Return the array with a further last axis of length 1, the one index that is recorded."""
        if key != (..., None):
            raise TypeError(f"the index {key} is not recorded")
        return _reshape(self, (*self.shape, 1))

    def __neg__(self) -> RecordedArray:
        return _elementwise("negative", self)

    def __invert__(self) -> RecordedArray:
        return _elementwise("logical_not", self, dtype=bool)


def _elementwise(function: str, *arguments: Any, dtype: Any = np.float64) -> RecordedArray:
    arrays = [one for one in arguments if isinstance(one, RecordedArray)]
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    return arrays[0].device.result(function, arguments, shape, dtype)


def _reshape(x: RecordedArray, shape: Shape) -> RecordedArray:
    return x if shape == x.shape else x.device.result("reshape", (x, shape), shape, x.dtype)


def _broadcast_to(x: RecordedArray, shape: Shape) -> RecordedArray:
    return x if shape == x.shape else x.device.result("broadcast_to", (x, shape), shape, x.dtype)


def _full(shape: Shape, value: float, *, dtype: Any = np.float64, device: Recording) -> RecordedArray:
    return device.result("full", (shape, value), shape, dtype)


def _asarray(value: float, *, dtype: Any = np.float64, device: Recording) -> RecordedArray:
    return _full((), value, dtype=dtype, device=device)


def _zeros_like(x: RecordedArray, *, dtype: Any = np.float64) -> RecordedArray:
    return _full(x.shape, 0.0, dtype=dtype, device=x.device)


def _astype(x: RecordedArray, dtype: Any) -> RecordedArray:
    """Return ``x`` with another type. Truth values are the numbers 1 and 0 in every recording."""
    return x.device.array(x.name, x.shape, dtype)


def _cumulative_sum(x: RecordedArray, *, axis: int) -> RecordedArray:
    """Return the sums up to each element of the last axis, the one axis that is recorded."""
    if axis not in (-1, x.ndim - 1):
        raise TypeError(f"sums along axis {axis} are not recorded")
    return x.device.result("cumulative_sum", (x,), x.shape)


ARITHMETIC = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow"}
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
               "ne": "not_equal", "and": "logical_and", "or": "logical_or"}  # fmt: skip # names, several per line
"""Python's operators, and the functions of the standard that they stand for."""
UNARY = ("abs", "exp", "expm1", "log", "log1p", "sqrt")
REDUCTIONS = ("sum", "max", "min")


def _operator(function: str, dtype: Any, *, swapped: bool = False) -> Any:
    def operate(one: RecordedArray, other: Any) -> RecordedArray:
        return _elementwise(function, *((other, one) if swapped else (one, other)), dtype=dtype)

    return operate


def _named(function: str, dtype: Any = np.float64) -> Any:
    return lambda *arguments: _elementwise(function, *arguments, dtype=dtype)


def _reduction(function: str) -> Any:
    def reduced(x: RecordedArray, *, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> RecordedArray:
        axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        over = tuple(sorted(one % x.ndim for one in axes))
        kept = tuple(1 if n in over else size for n, size in enumerate(x.shape))
        whole = x.device.result(function, (x, over), kept)
        return whole if keepdims else _reshape(whole, tuple(size for n, size in enumerate(x.shape) if n not in over))

    return reduced


for _name, _function in ARITHMETIC.items():
    setattr(RecordedArray, f"__{_name}__", _operator(_function, np.float64))
    setattr(RecordedArray, f"__r{_name}__", _operator(_function, np.float64, swapped=True))
for _name, _function in COMPARISONS.items():
    setattr(RecordedArray, f"__{_name}__", _operator(_function, bool))

NAMESPACE: Array = SimpleNamespace(
    __name__=__name__,
    asarray=_asarray,
    astype=_astype,
    bool=np.dtype(bool),
    broadcast_to=_broadcast_to,
    cumulative_sum=_cumulative_sum,
    float64=np.dtype(np.float64),
    full=_full,
    maximum=_named("maximum"),
    minimum=_named("minimum"),
    reshape=_reshape,
    where=_named("where"),
    zeros_like=_zeros_like,
    **{name: _named(name) for name in UNARY},
    **{name: _reduction(name) for name in REDUCTIONS},
)
"""The part of the standard that is recorded. A function that is missing here raises an AttributeError."""
