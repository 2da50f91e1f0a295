"""Headers of safetensors and GGUF files, read without the weights: the tensors' names and shapes, GGUF's metadata, and
whether the file is complete. GGUF's layout follows its specification, versions 2 and 3 (ggml's ``docs/gguf.md``).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from grpo_core.regular_file import opened_regular, read_limited
from grpo_core.text import tr
from grpo_core.trainers.hf.refusal import refuse

Shapes = Mapping[str, tuple[int, ...]]
"""Name of a tensor -> its shape."""

LONGEST_HEADER = 100_000_000
"""Maximum length of a header in bytes, from the format's specification."""
LARGEST_INDEX = 50_000_000
MOST_TENSORS, LONGEST_NAME, MOST_AXES = 200_000, 1_000, 16
"""Limits for one file. The largest models have about ten thousand tensors."""
_BITS = {"F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
         "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8}  # fmt: skip # names, several per line
"""Bits per number by dtype. Dtypes added to the format later are not checked."""
ONE, INDEX = "model.safetensors", "model.safetensors.index.json"
MAGIC = b"GGUF"
MOST_ENTRIES = 100_000
MOST_ITEMS = 4_000_000
LONGEST_TEXT = 10_000_000
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the safetensors files of a model, as listed in its index.

    Raises:
        SettingsError: there are none, or the index lists missing files.
    """
    if (folder / ONE).exists():
        return (folder / ONE,)
    if not (folder / INDEX).exists():
        raise refuse(folder, _without_weights(folder))
    try:
        content = read_limited(folder / INDEX, LARGEST_INDEX)
        names = sorted(set(json.loads(content or b"")["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refuse(folder, tr("its {file} cannot be read").format(file=INDEX)) from None
    if not names or any(not isinstance(name, str) or Path(name).name != name for name in names):
        raise refuse(folder, tr("its {file} names files outside the folder").format(file=INDEX))
    absent = [name for name in names if not (folder / name).is_file()]
    if absent:
        raise refuse(folder, tr("{file} is missing; copy the entire folder").format(file=absent[0]))
    return tuple(folder / name for name in names)


def shapes_of(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor in a safetensors file.

    Raises:
        SettingsError: the file is empty, truncated, or not a safetensors file.
    """
    folder = path.parent
    try:
        with opened_regular(path) as file:
            head = file.read(8)
            size = path.stat().st_size
            if not head:
                raise refuse(folder, tr("{file} has 0 bytes; copy it again").format(file=path.name))
            length = struct.unpack("<Q", head)[0] if len(head) == 8 else LONGEST_HEADER + 1
            header = json.loads(file.read(length) if length <= min(LONGEST_HEADER, size) else b"")
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        if len(entries) > MOST_TENSORS or any(len(name) > LONGEST_NAME for name in entries):
            raise ValueError("too many tensors")
        shapes = {name: _shape(entry) for name, entry in entries.items()}
        end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    except OSError as error:
        raise refuse(
            folder, tr("{file} cannot be read ({reason})").format(file=path.name, reason=error.strerror)
        ) from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, MemoryError):
        raise refuse(folder, tr("{file} is not a safetensors file").format(file=path.name)) from None
    if 8 + length + end > size:
        raise refuse(
            folder,
            tr("{file} is cut short: it has {size:,} of {whole:,} bytes; copy it again").format(
                file=path.name, size=size, whole=8 + length + end
            ),
        )
    return shapes


def _shape(entry: Any) -> tuple[int, ...]:
    """Return the shape in a tensor's header entry. ValueError if it does not match the number of bytes."""
    shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
    if len(shape) > MOST_AXES or not all(type(n) is int and 0 <= n < 2**63 for n in (*shape, begin, end)):
        raise ValueError("no shape")
    bits = _BITS.get(entry["dtype"])
    if bits is not None and 8 * (end - begin) != bits * math.prod(shape):
        raise ValueError("another size")
    return shape


def numbers(shapes: Shapes) -> int:
    """Return the number of elements of all tensors together."""
    return sum(math.prod(shape) for shape in shapes.values())


def _without_weights(folder: Path) -> str:
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")) or any(folder.glob("*.pth")):
        return tr("its weights are stored as pickle, which can run any code; save them as safetensors")
    if (folder / "adapter_model.safetensors").exists():
        return tr("it contains only an adapter; choose the folder of a complete model")
    return tr("it does not contain {file}").format(file=ONE)


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
