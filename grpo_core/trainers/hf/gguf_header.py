"""The header of a GGUF file, read without the weights: its metadata and the shapes of its tensors.

The layout follows the GGUF specification, versions 2 and 3 (ggml's ``docs/gguf.md``).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from grpo_core.regular_file import opened_regular
from grpo_core.text import tr
from grpo_core.trainers.hf.refusal import refuse

MAGIC = b"GGUF"
MOST_ENTRIES = 100_000
MOST_ITEMS = 4_000_000
LONGEST_TEXT = 10_000_000
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


def header_of(path: Path) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """Read the header of a GGUF file.

    Returns:
        Its metadata, key -> number, string or list of these; and the shape of each tensor by name, (rows, columns).

    Raises:
        SettingsError: the file is empty, truncated, or not a GGUF file.
    """
    try:
        with opened_regular(path) as file:
            if not (magic := file.read(4)):
                raise refuse(path, tr("it has 0 bytes; copy it again"))
            if magic != MAGIC or _number(file, "I") not in (2, 3):
                raise refuse(path, tr("it is not a GGUF file of version 2 or 3"))
            tensors, entries = _count(file, MOST_ENTRIES), _count(file, MOST_ENTRIES)
            metadata = {_text(file): _value(file, _number(file, "I")) for _ in range(entries)}
            shapes, furthest = {}, 0
            for _ in range(tensors):
                name = _text(file)
                shape = tuple(_number(file, "Q") for _ in range(min(_number(file, "I"), 8)))
                _number(file, "I")
                furthest = max(furthest, _number(file, "Q"))
                shapes[name] = shape[::-1]
            start = file.tell()
    except OSError as error:
        raise refuse(path, tr("it cannot be read ({reason})").format(reason=error.strerror)) from None
    except (ValueError, KeyError, struct.error, MemoryError, OverflowError, RecursionError):
        raise refuse(path, tr("its header cannot be read; it is damaged or cut short")) from None
    if path.stat().st_size <= start + furthest:
        raise refuse(path, tr("it is cut short; copy it again"))
    return metadata, shapes


def _number(file: BinaryIO, kind: str) -> Any:
    return struct.unpack("<" + kind, file.read(struct.calcsize("<" + kind)))[0]


def _count(file: BinaryIO, most: int) -> int:
    count = int(_number(file, "Q"))
    if count > most:
        raise ValueError(f"{count} entries")
    return count


def _text(file: BinaryIO) -> str:
    length = _count(file, LONGEST_TEXT)
    content = file.read(length)
    if len(content) < length:
        raise ValueError("cut short")
    return content.decode("utf-8", "backslashreplace")


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind != _LIST:
        return _number(file, _NUMBERS[kind])
    inner, count = _number(file, "I"), _count(file, MOST_ITEMS)
    if inner in _NUMBERS:
        return list(struct.unpack(f"<{count}{_NUMBERS[inner]}", file.read(count * struct.calcsize(_NUMBERS[inner]))))
    return [_value(file, inner) for _ in range(count)]
