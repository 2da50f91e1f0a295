"""Faster reading of GGUF files with transformers, in a third of the time and without a progress bar."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

_REPEATED = ("GGUFReader", "get_tensor_name_map")
"""Functions of ``gguf`` that transformers 5.23 calls repeatedly for one file. It reads the header three times, with a
Python loop over every token of the vocabulary, and builds the table of names once per module of the model.
"""


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Context manager in which repeated calls of ``gguf`` are cached and no progress bar is written to stderr."""
    try:
        import gguf
        from transformers import modeling_gguf_pytorch_utils as reading
    except ImportError:  # transformers then raises an error with instructions
        yield
        return
    own, bar = {name: getattr(gguf, name) for name in _REPEATED}, getattr(reading, "tqdm", None)
    for name, function in own.items():
        setattr(gguf, name, functools.cache(function))
    if bar is not None:
        reading.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        if bar is not None:
            reading.tqdm = bar
        for name, function in own.items():
            setattr(gguf, name, function)
