"""A model asks between its layers whether to go on, forwards and backwards: a chunk of rows alone takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


def attend(model: nn.Module, ask: Callable[[], None]) -> None:
    """From now on ``model`` calls ``ask`` before each of its layers, and before each on the way back.

    Whatever ``ask`` raises ends the pass and reaches whoever began it; gradients are left half added up.

    Args:
        model: transformers' own or peft's; its layers are the longest list of modules in it.
        ask: must be cheap; nothing that it does may change a number.
    """
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]

    def forwards(layer: nn.Module, arguments: Any) -> None:
        ask()

    def backwards(layer: nn.Module, arguments: Any, output: Any) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        if isinstance(hidden, Tensor) and hidden.requires_grad:
            hidden.register_hook(lambda gradient: ask())  # type: ignore[no-untyped-call]

    for layer in max(lists, key=len, default=nn.ModuleList()):
        layer.register_forward_pre_hook(forwards)
        layer.register_forward_hook(backwards)
