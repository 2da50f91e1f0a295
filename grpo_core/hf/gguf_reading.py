"""Reading a GGUF file with transformers in a third of the time, and without its progress bar."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

_REPEATED = ("GGUFReader", "get_tensor_name_map")
"""What transformers 5.23 asks of ``gguf`` again and again for one file: its header three times, with a Python loop over
every token of the vocabulary, and the table of names once for each module of the model."""


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Within, what ``gguf`` is asked for repeatedly is computed once, and no progress bar is written to stderr."""
    try:
        import gguf
        from transformers import modeling_gguf_pytorch_utils as reading
    except ImportError:  # transformers says so
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
