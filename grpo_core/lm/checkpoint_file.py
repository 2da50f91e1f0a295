"""Reader that loads the character transformer's checkpoints, safetensors files, into NumPy arrays.

The format (github.com/huggingface/safetensors): the length of the header in 8 bytes, little-endian; the header, JSON
with each tensor's type, shape and offsets; the numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from grpo_core.config import Model
from grpo_core.errors import SettingsError
from grpo_core.lm.vocabulary import VOCABULARY
from grpo_core.regular_file import opened_regular
from grpo_core.shipped import CHECKPOINTS, resource
from grpo_core.text import tr

SIZE = ("layers", "width", "heads", "context")
LONGEST_HEADER = 100_000_000
"""Maximum length of a header in bytes, from the format's specification."""
_DTYPES: dict[str, np.dtype[Any]] = {
    f"{kind.upper()}{8 * size}": np.dtype(f"<{kind}{size}")
    for kind, sizes in (("f", (2, 4, 8)), ("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)))
    for size in sizes
} | {"BF16": np.dtype("<u2"), "BOOL": np.dtype("?")}


def checkpoint_path(size: Model) -> Path:
    """Return the path of the initial weights of a run that starts from a trained model."""
    shipped = CHECKPOINTS.get(size.checkpoint)
    return Path(size.checkpoint) if shipped is None else resource(shipped)


def read_checkpoint(
    path: Path, size: Model, expected: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read the weights at ``path``, as float32, and the file's metadata.

    Args:
        expected: name -> shape of its tensors.

    Raises:
        SettingsError: the file cannot be read, is not a checkpoint, or belongs to a model of another size.
    """

    def refuse(allowed: str) -> SettingsError:
        return SettingsError("model.checkpoint", str(path), allowed)

    try:
        with opened_regular(path.expanduser()) as file:  # reading a pipe would block
            tensors, about = _header(file)
            shapes = {name: tuple(entry["shape"]) for name, entry in tensors.items()}
            # unexpected tensors are not loaded: a sparse file can declare more than fits into memory
            weights = _weights(file, tensors) if shapes == dict(expected) else {}
    except OSError as error:
        raise refuse(
            tr("it cannot be read ({strerror}); choose “shipped” or another file").format(
                strerror=error.strerror or tr("not found")
            )
        ) from None
    except (ValueError, RuntimeError) as error:
        raise refuse(tr("it is not a safetensors file ({error})").format(error=error)) from None
    stored = _size(about)
    wanted = {name: getattr(size, name) for name in SIZE}
    if stored is not None and stored != wanted:
        sizes = ", ".join(f"{name} {value}" for name, value in stored.items())
        raise refuse(
            tr("it belongs to a model with {sizes}; choose these sizes, “untrained”, or another checkpoint").format(
                sizes=sizes
            )
        )
    if about.get("vocabulary", "".join(VOCABULARY)) != "".join(VOCABULARY):
        raise refuse(tr("it was trained on other characters"))
    if shapes != dict(expected):
        raise refuse(tr("its tensors are not those of this model"))
    if not all(bool(np.isfinite(weight).all()) for weight in weights.values()):
        raise refuse(tr("some of its weights are not finite numbers"))
    return weights, about


def _header(file: IO[bytes]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Read the header: (name -> entry of each tensor, metadata). Leaves the file positioned after the header.

    Raises:
        ValueError: the file is not a safetensors file; the message says why.
    """
    end = file.seek(0, 2)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if end < 8 or length > min(end - 8, LONGEST_HEADER):
        raise ValueError(tr("its header is longer than the file"))
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError):
        raise ValueError(tr("its header is not JSON")) from None
    about = header.pop("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(about, dict) or not all(isinstance(text, str) for text in about.values()):
        raise ValueError(tr("its header does not describe tensors"))
    places = sorted(_place(entry) for entry in header.values())
    covered = [0, *(stop for _, stop in places)]
    if [start for start, _ in places] != covered[:-1] or covered[-1] != end - 8 - length:
        raise ValueError(tr("its tensors do not fill it"))
    return header, about


def _place(entry: Any) -> tuple[int, int]:
    """Return the start and end of a tensor's data, as byte offsets after the header."""
    match entry:
        case {"dtype": str(), "shape": list(shape), "data_offsets": [int(start), int(stop)]} if all(
            type(n) is int and n >= 0 for n in shape
        ):
            kind = _DTYPES.get(entry["dtype"])
            if kind is None:
                raise ValueError(tr("numbers of the type {dtype}").format(dtype=entry["dtype"][:20]))
            if start >= 0 and stop - start == math.prod(shape) * kind.itemsize:
                return start, stop
    raise ValueError(tr("its header does not describe tensors"))


def _weights(file: IO[bytes], tensors: Mapping[str, dict[str, Any]]) -> dict[str, np.ndarray]:
    start, weights = file.tell(), {}
    for name, entry in tensors.items():
        begin, stop = entry["data_offsets"]
        file.seek(start + begin)
        stored = np.frombuffer(file.read(stop - begin), _DTYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":  # bfloat16 is the upper half of a float32
            stored = (stored.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(over="ignore"):  # overflow becomes infinite and is rejected
            weights[name] = stored.astype(np.float32).reshape(entry["shape"])
    return weights


def _size(about: Mapping[str, str]) -> dict[str, int] | None:
    try:
        size = json.loads(about["size"])
        return {name: int(size[name]) for name in SIZE}
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        return None
