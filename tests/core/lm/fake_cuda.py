"""CUDA tensors without a GPU: they have a shape and a device, but no numbers.

An operation raises an error if its result depends on a number, so that the host would have to wait for it, and if it
mixes tensors of the host and the device. A CUDA graph can contain neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda")
ATEN = torch.ops.aten


class _Methods(TorchFunctionMode):
    """Replaces the methods of a tensor that ask a driver for the current GPU before they dispatch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own: dict[Any, Callable[..., Any]] = {
            Tensor.__getitem__: _indexed,
            Tensor.__setitem__: lambda x, index, value: ATEN.copy_.default(_indexed(x, index), value),
            Tensor.__invert__: ATEN.bitwise_not.default,
            Tensor.copy_: ATEN.copy_.default,
            Tensor.contiguous: lambda x: ATEN.clone.default(x, memory_format=torch.contiguous_format),
            Tensor.new_ones: lambda x, *size: ATEN.new_ones.default(x, size),
            Tensor.pin_memory: lambda x: x,
            Tensor.to: _converted,
            Tensor.float: lambda x: _converted(x, torch.float32),
            Tensor.int: lambda x: _converted(x, torch.int32),
        }
        return own.get(func, func)(*args, **(kwargs or {}))


def _indexed(x: Tensor, index: Any) -> Tensor:
    index, dim = index if isinstance(index, tuple) else (index,), 0
    if Ellipsis in index:
        at, given = index.index(Ellipsis), sum(i is not None and i is not Ellipsis for i in index)
        index = (*index[:at], *[slice(None)] * (x.ndim - given), *index[at + 1 :])
    for i in index:
        if isinstance(i, int):
            x = ATEN.select.int(x, dim, i)
            continue
        x = ATEN.unsqueeze.default(x, dim) if i is None else ATEN.slice.Tensor(x, dim, i.start, i.stop)
        dim += 1
    return x


def _converted(x: Tensor, *given: Any, **named: Any) -> Tensor:
    wanted = [*given, *named.values()]
    kind = next((each for each in wanted if isinstance(each, torch.dtype)), x.dtype)
    device = next((torch.device(each) for each in wanted if isinstance(each, (str, torch.device))), x.device)
    same = kind == x.dtype and device.type == x.device.type
    return x if same else ATEN.to.device(x, device, kind)


@contextmanager
def fake_cuda() -> Iterator[Callable[[nn.Module], nn.Module]]:
    """Context manager that provides a function which moves a model to a GPU that is not there."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def fake(x: Tensor) -> Tensor:
        return FakeTensor(mode, x.detach().to("meta"), CUDA)

    def moved(model: nn.Module) -> nn.Module:
        for module in model.modules():
            for name, weight in [*module.named_parameters(recurse=False)]:
                setattr(module, name, nn.Parameter(fake(weight), requires_grad=weight.requires_grad))
            for name, buffer in [*module.named_buffers(recurse=False)]:
                setattr(module, name, fake(buffer))
        return model

    with mode, _Methods():
        yield moved
