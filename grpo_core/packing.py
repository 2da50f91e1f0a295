"""Serialisation of the arguments and results of experiments, as JSON with raw bytes for arrays. No pickle."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core import parts
from grpo_core.config import Settings, settings_from_json
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.race import Digest
from grpo_core.experiments.repeats import Repeats
from grpo_core.memory import Block
from grpo_core.queue.queue import RunStatus
from grpo_core.record import Step
from grpo_core.runs.layout import decoded, encoded
from grpo_core.what_if import Compared as ComparedNumber

KINDS: dict[str, type] = {
    "block": Block,
    "digest": Digest,
    "ensemble": Ensemble,
    "compared number": ComparedNumber,
    "repeats": Repeats,
    "run status": RunStatus,
}
"""Dataclasses that are serialised field by field, by their names in the format. Parts contribute more."""


@cache
def kinds() -> dict[str, type]:
    """Return :data:`KINDS` with those of the parts."""
    return {**KINDS, **parts.merged("packed")}


@cache
def _names() -> dict[type, str]:
    return {kind: name for name, kind in kinds().items()}


BESIDE = ("label", "prompt_texts", "completion_texts")
"""Fields of a step recorded by another trainer, in addition to its arrays."""

Tree = Any
"""Any value that ``json.dumps`` accepts."""


def packed(value: object) -> tuple[Tree, list[bytes]]:
    """Serialise ``value`` as a tree and the bytes of its arrays, from which :func:`unpacked` creates an equal value.

    Raises:
        TypeError: a part of the value has an unsupported type.
    """
    blobs: list[bytes] = []
    return _tree(value, blobs), blobs


def unpacked(tree: Tree, blobs: Sequence[bytes]) -> Any:
    """Return the value serialised by :func:`packed`. Arrays are read-only.

    Raises:
        ValueError: the tree contains something unknown.
    """
    match tree:
        case None | bool() | int() | float() | str():
            return tree
        case {"array": place, "dtype": dtype, "shape": shape}:
            return np.frombuffer(blobs[place], dtype).reshape(shape)
        case {"settings": text}:
            return _settings(text)
        case {"step": place, "layout": layout, "number": number, "under": text, "beside": beside}:
            step = decoded(layout, blobs[place], number, _settings(text))
            return dataclasses.replace(step, **unpacked(beside, blobs)) if beside else step
        case {"path": text}:
            return Path(text)
        case {"strings": values}:
            return tuple(values)
        case {"tuple": values}:
            return tuple(unpacked(value, blobs) for value in values)
        case {"list": values}:
            return [unpacked(value, blobs) for value in values]
        case {"dict": pairs}:
            return {unpacked(key, blobs): unpacked(value, blobs) for key, value in pairs}
        case {"kind": name, "fields": fields}:
            return kinds()[name](**{field: unpacked(value, blobs) for field, value in fields.items()})
        case _:
            raise ValueError(f"an experiment's process sent {tree!r}")


def _tree(value: object, blobs: list[bytes]) -> Tree:
    match value:
        case np.generic():
            return value.item()
        case None | bool() | int() | float() | str():
            return value
        case np.ndarray():
            return {"array": _placed(value.tobytes(), blobs), "dtype": value.dtype.str, "shape": value.shape}
        case Path():
            return {"path": str(value)}
        case Settings():
            return {"settings": value.to_json()}
        case Step():
            layout, record = encoded(value)
            place = _placed(record, blobs)
            beside = {name: known for name in BESIDE if (known := getattr(value, name)) is not None}
            return {
                "step": place,
                "layout": layout,
                "number": value.step,
                "under": value.settings.to_json(),
                "beside": _tree(beside, blobs) if beside else None,
            }
        case tuple() if value and all(one is None or type(one) is str for one in value):
            return {"strings": value}
        case tuple() | list():
            return {type(value).__name__: [_tree(one, blobs) for one in value]}
        case dict():
            return {"dict": [(_tree(key, blobs), _tree(one, blobs)) for key, one in value.items()]}
        case _ if type(value) in _names():  # last, because the kinds of the parts take 0.1 s to import
            assert dataclasses.is_dataclass(value)
            fields = {field.name: _tree(getattr(value, field.name), blobs) for field in dataclasses.fields(value)}
            return {"kind": _names()[type(value)], "fields": fields}
        case _:
            raise TypeError(f"{type(value).__name__} does not cross to the process of an experiment")


_settings = lru_cache(maxsize=16)(settings_from_json)


def _placed(data: bytes, blobs: list[bytes]) -> int:
    blobs.append(data)
    return len(blobs) - 1
