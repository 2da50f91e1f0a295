"""Checks of the replies of a process that reads untrusted files, which may send anything.

A reply must have the type that the function which answers the request declares, down to the fields of dataclasses.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union

import numpy as np

from grpo_core.foreign.recording import Completions

_LONGEST_AXIS = 1 << 31
_UNBOUNDED_COLLECTIONS = (list, Sequence, set, frozenset)


def yielded_by(answers: Callable[..., object]) -> Any:
    """Return the type of the results that a function declares to yield."""
    stated = types.SimpleNamespace(__annotations__={"return": answers.__annotations__["return"]})
    (kind,) = typing.get_args(typing.get_type_hints(stated, answers.__globals__)["return"])
    return kind


def fits(value: object, kind: Any) -> bool:
    """Return whether ``value`` has the type ``kind``, a type hint.

    Raises:
        TypeError: the hint is of a sort that no reply has.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in arguments)
    if origin is tuple:
        if arguments[1:] == (...,):
            return isinstance(value, tuple) and all(fits(one, arguments[0]) for one in value)
        return isinstance(value, tuple) and len(value) == len(arguments) and all(map(fits, value, arguments))
    if origin in _UNBOUNDED_COLLECTIONS:
        return isinstance(value, list | tuple) and all(fits(one, arguments[0]) for one in value)
    if origin in (dict, Mapping):
        pairs = value.items() if isinstance(value, dict) else [(None, None)]
        return isinstance(value, dict) and all(fits(one, arguments[0]) and fits(it, arguments[1]) for one, it in pairs)
    if kind is None or kind is types.NoneType:
        return value is None
    if kind is np.ndarray or origin is np.ndarray:
        return (
            isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and max(value.shape, default=0) < _LONGEST_AXIS
        )
    kind = origin if isinstance(origin, type) else kind
    if not isinstance(kind, type):
        raise TypeError(f"no reply has the type {kind}")
    if typing.is_typeddict(kind):
        hints = _hints(kind)
        return isinstance(value, dict) and value.keys() == hints.keys() and _all_fit(hints, value.__getitem__)
    if kind is float:
        return type(value) in (float, int)
    if kind in (int, str, bool):
        return type(value) is kind
    if isinstance(value, kind) and dataclasses.is_dataclass(kind):
        hints = {field.name: _hints(type(value))[field.name] for field in dataclasses.fields(value)}  # type: ignore[arg-type]
        return _all_fit(hints, lambda name: getattr(value, name)) and _rows_agree(value)
    return isinstance(value, kind)


def _all_fit(hints: Mapping[str, Any], get: Callable[[str], object]) -> bool:
    return all(fits(get(name), hint) for name, hint in hints.items())


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _rows_agree(value: object) -> bool:
    """Return whether the columns of a table of completions have as many rows as it has prompts."""
    if not isinstance(value, Completions):
        return True
    rows, names = len(value.prompts), ("reward_names", "reward_weights", "metric_names")
    columns = [getattr(value, field.name) for field in dataclasses.fields(value) if field.name not in names]
    wide = ((value.reward_parts, value.reward_names), (value.metrics, value.metric_names))
    pairs = value.reward_range
    return (
        all(len(column) == rows for column in columns if isinstance(column, tuple))
        and all(column.shape[:1] == (rows,) for column in columns if isinstance(column, np.ndarray))
        and all(array is None or array.shape == (rows, len(columns)) for array, columns in wide)
        and (pairs is None or pairs.shape == (rows, 2))
        and all(column.ndim == 1 for column in (value.group, value.rewards))
        and bool(np.all((value.group >= 0) & (value.group < max(rows, 1))))
    )
