"""Scalars of TensorBoard's event files.

Such a file is a sequence of records: length (8 bytes), its checksum (4), a message, its checksum (4). The fields of the
messages are those of ``tensorflow/core/util/event.proto`` and ``framework/summary.proto``. Checksums are not verified.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from grpo_core.errors import RunFileError
from grpo_core.regular_file import opened_regular
from grpo_core.text import tr

NAMED = "tfevents"
"""Part of the name of every event file."""
LARGEST_RECORD, MOST_SCALARS = 64 << 20, 5_000_000
"""Maximum size of a record in bytes, and maximum number of scalars that are read."""
_STEP, _SUMMARY, _VALUE = 2, 5, 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_FLOATS, _DOUBLES, _CONTENT, _TYPE = 5, 6, 4, 1
_FORMATS: dict[int | bytes | None, str] = {1: "<f", 2: "<d"}
"""Type of a tensor with one number -> its format."""


def scalars(path: Path) -> Iterator[tuple[int, str, float]]:
    """Yield (step, tag, value) of each scalar, in the order in which they were written.

    An incomplete record at the end is left out, as the file may still be written.

    Raises:
        RunFileError: the file is not an event file, or damaged.
    """
    count = 0
    try:
        with opened_regular(path) as file:
            while len(head := file.read(12)) == 12:
                (size,) = struct.unpack("<Q", head[:8])
                if size > LARGEST_RECORD:
                    raise ValueError(f"a record of {size} bytes")
                record = file.read(size + 4)
                if len(record) < size + 4:
                    return
                for scalar in _of_event(record[:size]):
                    yield scalar
                    count += 1
                    if count >= MOST_SCALARS:
                        return
    except (OSError, ValueError, struct.error) as error:
        raise RunFileError(
            tr("{name} cannot be read as an event file of TensorBoard: {error}.").format(name=path.name, error=error)
        ) from None


def _of_event(data: bytes) -> Iterator[tuple[int, str, float]]:
    event = [*_fields(data)]
    step = next((value for number, value in event if number == _STEP and isinstance(value, int)), 0)
    for summary in (value for number, value in event if number == _SUMMARY and isinstance(value, bytes)):
        for value in (value for number, value in _fields(summary) if number == _VALUE and isinstance(value, bytes)):
            fields = dict(_fields(value))
            tag, simple, tensor = (fields.get(number, b"") for number in (_TAG, _SIMPLE, _TENSOR))
            number = _of_tensor(tensor) if isinstance(tensor, bytes) else None
            if isinstance(simple, bytes) and len(simple) == 4:
                (number,) = struct.unpack("<f", simple)
            if number is not None and isinstance(tag, bytes):
                yield step - (1 << 64) * (step >> 63), tag.decode("utf-8", "replace"), number


def _of_tensor(data: bytes) -> float | None:
    fields = dict(_fields(data))
    form = _FORMATS.get(fields.get(_TYPE))
    for value in (fields.get(number) for number in (_FLOATS, _DOUBLES, _CONTENT)):
        if form is not None and isinstance(value, bytes) and len(value) == struct.calcsize(form):
            return float(struct.unpack(form, value)[0])
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of each field of a message, an integer or bytes. ValueError if it is no message."""
    at = 0
    while at < len(data):
        key, at = _integer(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _integer(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _integer(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if at + size > len(data):
            raise ValueError("a field beyond its message")
        yield key >> 3, data[at : at + size]
        at += size


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length integer at ``at`` and the place after it."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("an integer without an end")
