"""Serialisation of a step: its arrays concatenated, little-endian, described in JSON by NumPy's dtype strings.

Steps with the same shapes share one layout, so a record only holds numbers. Each array starts at a multiple of eight
bytes: arrays are read as aligned views of the record, for which NumPy's results equal those for the originals.

A decoded step is validated: its arrays match each other, so that computations need not check this. A checksum only
shows that a record is unchanged, not that it was a valid step when it was written.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError, RunFileError, shortened
from grpo_core.parsing import is_whole
from grpo_core.record import ARRAYS, Step
from grpo_core.runs.limits import LONGEST_AXIS, MOST_ARRAYS, MOST_AXES
from grpo_core.text import plural, tr

_ALIGNMENT = 8
_WHOLE, _REAL, _TRUTH, _ANY = "iu", "f", "b", "biuf"
"""Kinds of NumPy's element types."""
_KINDS = frozenset({"|b1", "|i1", "|u1", *(f"<{kind}{size}" for kind in "iuf" for size in (2, 4, 8))})
"""Element types that a layout can name. NumPy would interpret any other description, however complex."""
_MEASUREMENT, _RESUME, _PART = "measurement.", "resume.", "reward_part."
_RECORDS: WeakKeyDictionary[Step, tuple[str, bytes]] = WeakKeyDictionary()
"""Serialised records of steps still in use.

The bytes of an update are needed twice: for its file and for the window.
"""
_LONGEST_NAME = 200
_LARGEST = 1 << 40
"""Upper bound on the size of a record in bytes."""
Shape = tuple[int | None, ...]
"""A shape; None stands for a dimension that no other array determines."""


def packed(arrays: Mapping[str, Any]) -> tuple[str, bytes]:
    """Serialise ``arrays`` as (layout in JSON, record). None values are omitted.

    Raises:
        RunFileError: an array holds something other than booleans or numbers.
    """
    described, chunks = [], []
    for name, value in arrays.items():
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype.kind not in _ANY:
            raise RunFileError(
                tr("The array “{name}” contains {dtype}; a run file stores only booleans and numbers.").format(
                    name=name, dtype=array.dtype
                )
            )
        little, kind = _little_endian(array.dtype)
        data = array.astype(little, copy=False).tobytes()
        described.append((name, kind, array.shape))
        chunks.append(data)
        if padding := -len(data) % _ALIGNMENT:
            chunks.append(bytes(padding))
    return _layout_json(tuple(described)), b"".join(chunks)


@lru_cache(maxsize=64)
def _little_endian(dtype: np.dtype) -> tuple[np.dtype, str]:
    """Return the little-endian form of ``dtype``, in which arrays are stored, and its name in a layout."""
    little = dtype.newbyteorder("<")
    return little, little.str


def unpacked(layout: str, record: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of ``record`` by name, as read-only views of it.

    Raises:
        RunFileError: the layout is invalid, or the record does not have the size that it describes.
    """
    size, places = _places(layout)
    if len(record) != size:
        raise RunFileError(
            plural(
                "A record has {count} byte instead of {size}; it is damaged.",
                "A record has {count} bytes instead of {size}; it is damaged.",
                len(record),
            ).format(count=len(record), size=size)
        )
    return {name: np.ndarray(shape, kind, record, offset) for name, kind, shape, offset in places}


def encoded(step: Step) -> tuple[str, bytes]:
    """Return ``step`` as (layout in JSON, record), without its number and its settings."""
    result = _RECORDS.get(step)
    if result is None:
        arrays: dict[str, Any] = {name: getattr(step, name) for name in ARRAYS}
        arrays |= {_MEASUREMENT + name: np.float64(value) for name, value in step.measurements.items()}
        arrays |= {_RESUME + name: value for name, value in step.resume.items()}
        arrays |= {_PART + name: np.empty(0, np.uint8) for name in step.part_names or ()}  # a name takes no bytes
        result = _RECORDS[step] = packed(arrays)
    return result


def layout_id(connection: sqlite3.Connection, layout: str) -> tuple[int, bool]:
    """Return the number of ``layout`` in a file, and whether it is new there, within the caller's transaction."""
    new = connection.execute("INSERT OR IGNORE INTO layout(fields) VALUES (?)", (layout,)).rowcount > 0
    return connection.execute("SELECT id FROM layout WHERE fields = ?", (layout,)).fetchone()[0], new


def decoded(layout: str, record: bytes, number: int, settings: Settings) -> Step:
    """Decode a step from the result of :func:`encoded`.

    Raises:
        RunFileError: the record is damaged, or lacks an array that every step has.
        NotRecordedError: it is the empty record of an imported update of which only text was recorded.
    """
    plain: dict[str, Any] = {}
    measurements: dict[str, float] = {}
    resume: dict[str, np.ndarray] = {}
    parts: list[str] = []
    for name, array in unpacked(layout, record).items():
        if name.startswith(_MEASUREMENT):
            measurements[name.removeprefix(_MEASUREMENT)] = _number(array, name, number)
        elif name.startswith(_RESUME):
            resume[name.removeprefix(_RESUME)] = array
        elif name.startswith(_PART):
            parts.append(name.removeprefix(_PART))
        elif name in ARRAYS:  # fields of newer versions are ignored
            plain[name] = array
    if settings.is_recorded and not plain:
        raise NotRecordedError(tr("Update {number} contains texts and rewards, but no tokens.").format(number=number))
    if settings.is_language and "reward_parts" in plain:  # files of versions up to 0.3 do not name the parts they have
        plain["part_names"] = tuple(parts) or settings.language.part_names[: sum(plain["reward_parts"].shape[1:2])]
    try:
        return check(Step(step=number, settings=settings, measurements=measurements, resume=resume, **plain))
    except TypeError as error:
        raise RunFileError(
            tr("The record of update {number} is incomplete ({error}).").format(number=number, error=error)
        ) from None


def _number(array: np.ndarray, name: str, number: int) -> float:
    if array.shape:
        raise RunFileError(
            tr(
                "The record of update {number} has a table where there should be one number ({name}); it is damaged."
            ).format(number=number, name=name)
        )
    return float(array)


@lru_cache(maxsize=256)
def _layout_json(described: tuple[tuple[str, str, tuple[int, ...]], ...]) -> str:
    names, formats, shapes, offsets, end = [], [], [], [], 0
    for name, kind, shape in described:
        names.append(name)
        formats.append(kind)
        shapes.append(list(shape))
        offsets.append(end)
        size = np.dtype(kind).itemsize * math.prod(shape)
        end += size + -size % _ALIGNMENT
    return json.dumps({"names": names, "formats": formats, "shapes": shapes, "offsets": offsets, "itemsize": end})


@lru_cache(maxsize=256)
def _places(layout: str) -> tuple[int, list[tuple[str, np.dtype[Any], tuple[int, ...], int]]]:
    """Return (size of a record in bytes, [(name, dtype, shape, offset)]).

    Using this list is faster than using a structured dtype.
    """
    try:
        fields = json.loads(layout)
        whole = fields["itemsize"]
        if not is_whole(whole, 0, _LARGEST):
            raise ValueError("no record has this size")
        places = []
        columns = (fields["names"], fields["formats"], fields["shapes"], fields["offsets"])
        if max(map(len, columns)) > MOST_ARRAYS:
            raise ValueError("it names too many arrays")
        for name, text, shape, offset in zip(*columns, strict=True):
            if not isinstance(name, str) or len(name) > _LONGEST_NAME:
                raise ValueError("the name of an array is not a name")
            if text not in _KINDS:
                raise ValueError("only booleans and numbers are stored")
            kind = np.dtype(text)
            if len(shape) > MOST_AXES or not all(is_whole(n, 0, LONGEST_AXIS - 1) for n in shape):
                raise ValueError(f"“{name}” has no shape")
            # an empty array takes no bytes regardless of its other axes, but NumPy limits these too
            full = kind.itemsize * math.prod(n for n in shape if n)
            if full > _LARGEST or not is_whole(offset, 0, whole - kind.itemsize * math.prod(shape)):
                raise ValueError(f"“{name}” does not fit into the record")
            places.append((name, kind, tuple(shape), offset))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, SyntaxError, RecursionError) as error:
        raise RunFileError(
            tr("The description of a record cannot be read ({error}); the file is damaged.").format(
                error=shortened(error)
            )
        ) from None
    return whole, places


def check(step: Step) -> Step:
    """Validate and return ``step``.

    Raises:
        RunFileError: an array does not match the shapes of the others or has the wrong type, or an index is out of
            range.
    """
    batch, length = each = step.tokens.shape if step.tokens.ndim == 2 else (0, 0)
    if not batch or not length:
        raise _damaged(step, "tokens")
    passes = len(step.part) if step.part.ndim == 2 else 0
    micro = step.denominator.shape[-1] if step.denominator is not None and step.denominator.ndim else 0
    contexts: Shape = (None, None) if step.dist_logp is None else step.dist_logp.shape[1:]
    likeliest: list[Shape] = [] if step.top_tokens is None else [step.top_tokens.shape]
    shapes: dict[str, tuple[str, list[Shape]]] = {
        "tokens": (_WHOLE, [each]),
        "group": (_WHOLE, [(batch,)]),
        "row_id": (_WHOLE, [(batch,)]),
        "mask": (_TRUTH, [each]),
        "rewards": (_REAL, [(batch,)]),
        "reward_parts": (_ANY, [(batch, None if step.part_names is None else len(step.part_names))]),
        "old_logp": (_REAL, [each]),
        "logp": (_REAL, [(passes, *each), (passes + 1, *each)]),
        "part": (_WHOLE, [(passes, batch)]),
        "entropy": (_REAL, [(passes, *each), (passes + 1, *each)]),
        "entropy_weight": (_REAL, [(passes, *each)]),
        "ref_logp": (_REAL, [each]),
        "sampling_logp": (_REAL, [each]),
        "values": (_REAL, [each]),
        "advantage": (_ANY, [(batch,), each]),
        "gate": (_REAL, [each, (passes, *each)]),
        "context": (_WHOLE, [each]),
        "denominator": (_REAL, [(passes, micro)]),
        "step_rewards": (_REAL, [each]),
        "entropy_coefficient": (_REAL, [(passes, micro)]),
        "present": (_TRUTH, [each]),
        "written": (_TRUTH, [each]),
        "optimizer_step": (_WHOLE, [(passes,)]),
        "prompt_tokens": (_ANY, [(None, None)]),
        "watched_tokens": (_ANY, [(None, None)]),
        "dist_logp": (_ANY, [(2, None, None), (step.passes + 1, None, None)]),
        "ref_dist_logp": (_ANY, [contexts]),
        "top_tokens": (_WHOLE, [(*each, None)]),
        "top_logp": (_REAL, [(2, *shape) for shape in likeliest]),
        "ref_top_logp": (_REAL, likeliest),
    }
    for name, (kinds, allowed) in shapes.items():
        array = getattr(step, name)
        if array is not None and not (array.dtype.kind in kinds and _is_one_of(array.shape, allowed)):
            raise _damaged(step, name)
    if step.part_names is not None and step.reward_parts is None:
        raise _damaged(step, "reward_parts")
    _check_indices(step, batch, micro)
    return step


def _is_one_of(shape: tuple[int, ...], allowed: list[Shape]) -> bool:
    return shape in allowed or any(
        len(shape) == len(one) and all(n in (size, None) for n, size in zip(one, shape, strict=True)) for one in allowed
    )


def _check_indices(step: Step, batch: int, micro: int) -> None:
    """Validate indices into other arrays. The likeliest tokens of a position include the sampled one."""
    if step.group.min() < 0 or step.group.max() >= batch:
        raise _damaged(step, "group")
    most = batch if step.denominator is None else micro  # no more micro-batches than completions
    if step.part.size and (step.part.min() < -1 or step.part.max() >= most or step.part.max(axis=1).min() < 0):
        raise _damaged(step, "part")
    if step.dist_logp is not None:
        places, words = step.dist_logp.shape[1:]
        if step.tokens[step.mask].max(initial=0) >= words or step.tokens.min() < -1:
            raise _damaged(step, "tokens")
        if step.context is not None and (step.context.min() < -1 or step.context.max() >= places):
            raise _damaged(step, "context")
    if (ids := step.top_tokens) is not None:
        sampled = (ids == step.tokens[..., None]).any(axis=-1)
        if step.top_logp is None or ids[step.mask].min(initial=0) < 0 or not sampled[step.mask].all():
            raise _damaged(step, "top_tokens")


def _damaged(step: Step, name: str) -> RunFileError:
    return RunFileError(
        tr("The record of update {step} is inconsistent ({name}); it is damaged.").format(step=step.step, name=name)
    )
