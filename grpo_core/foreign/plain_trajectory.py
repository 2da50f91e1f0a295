"""Trajectories as JSON values, in which a converted run stores them."""

from __future__ import annotations

import dataclasses
from typing import Any

from grpo_core.foreign.replies import fits
from grpo_core.foreign.trajectory import ToolCall, Trajectory, Turn

PARTS: dict[str, type[Any]] = {"prompt": Turn, "turns": Turn, "calls": ToolCall}
"""The dataclass of a field's elements, for each field that is a tuple of dataclasses."""


def as_plain(value: Any) -> Any:
    """Convert a trajectory to JSON values. Fields with their default value are omitted."""
    if dataclasses.is_dataclass(value):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: as_plain(one) for field, one in fields if one != field.default}
    return [as_plain(one) for one in value] if isinstance(value, tuple) else value


def from_plain(plain: Any) -> Trajectory:
    """Convert JSON values from :func:`as_plain` back to a trajectory.

    Raises:
        TypeError: ``plain`` is not a trajectory: a field is missing, unknown or of another type.
    """
    trajectory: Trajectory = _built(Trajectory, plain)
    if not fits(trajectory, Trajectory):
        raise TypeError("a field of the trajectory has another type")
    return trajectory


def _built(kind: type[Any], plain: Any) -> Any:
    fields = {**plain}
    for name, value in fields.items():
        if isinstance(value, list):
            part = PARTS.get(name)
            fields[name] = tuple(_built(part, one) if part else _fixed(one) for one in value)
    return kind(**fields)


def _fixed(value: Any) -> Any:
    return tuple(map(_fixed, value)) if isinstance(value, list) else value
