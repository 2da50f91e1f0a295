"""Makes memory run out at a place of an update, wherever the model is computed, by an error that torch raises."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PLACES = {
    "copy": "kept_for",
    "cache": "prefilled",
    "drawing": "sample",
    "reference": "score_reference",
    "forward": "train",
    "backward": "backward",
    "after": "_scored_after",
}
"""Place of an update at which memory can run out, in order -> the function in which it does. ``train`` reaches to the
backward pass.
"""
CAPTURE = "of"
"""The function of the graphs of a model in which one is recorded, which is not part of an update on the CPU."""
CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
CUBLAS = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory")


def is_within(function: str) -> bool:
    """Return whether a function of this name is being called."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == function:
            return True
        frame = frame.f_back
    return False


class Starving(TorchDispatchMode):
    """While it is active, the first operations at ``place``, a key of :data:`PLACES` or a function, raise ``error``.

    Args:
        place: where memory runs out.
        error: what is raised.
        times: how often, before there is enough memory; None for always.
    """

    def __init__(self, place: str, error: Exception = CUDA, times: int | None = None) -> None:
        super().__init__()
        self._function, self._error, self.left = PLACES.get(place, place), error, times

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.left != 0 and is_within(self._function):
            self.left = None if self.left is None else self.left - 1
            raise type(self._error)(*self._error.args)
        return func(*args, **(kwargs or {}))
