"""Counts the operations that would make the host wait for a GPU, wherever the model is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

READS = {"_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "_unique2", "unique_dim"}
"""Operations that read a tensor's numbers on the host, or whose result has a length that depends on them."""
MOVES = {"cpu", "tolist"}
"""Methods that copy a tensor to the host."""


class _Operations(TorchDispatchMode):
    def __init__(self, seen: Counter[str]) -> None:
        super().__init__()
        self._seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        boolean = name.startswith("index") and any(
            isinstance(each, torch.Tensor) and each.dtype == torch.bool
            for given in args[1:2]
            if isinstance(given, list | tuple)
            for each in given
        )
        if name in READS or boolean:
            self._seen[f"{name} (boolean)" if boolean else name] += 1
        return func(*args, **(kwargs or {}))


class _Calls(TorchFunctionMode):
    """Moves between devices, which are not operations if both are the CPU: all moves to the host, and tensors from
    NumPy. A move that does not block is not counted.
    """

    def __init__(self, seen: Counter[str]) -> None:
        super().__init__()
        self._seen = seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(func, "__name__", ""), kwargs or {}
        sends = name == "to" and any(isinstance(x, torch.device) for x in (*args, *named.values()))
        sends = sends and not args[0].untyped_storage().resizable()  # that of an array's
        if name in MOVES or (sends and not named.get("non_blocking")):
            self._seen[name] += 1
        return func(*args, **named)


@contextmanager
def waits() -> Iterator[Counter[str]]:
    """Yield the counts, by name, of the waits in this context."""
    seen = Counter[str]()
    with _Calls(seen), _Operations(seen):
        yield seen
