"""Cancellation of a model's forward and backward pass between layers, since a chunk of rows can take seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


def attend(model: nn.Module, ask: Callable[[], None]) -> None:
    """Make ``model`` call ``ask`` before each of its layers, in the forward and the backward pass.

    An exception raised by ``ask`` ends the pass and propagates to its caller; gradients are left incomplete.

    Args:
        model: a model of transformers or peft; its layers are its longest list of modules.
        ask: must be fast, and must not affect any number.
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
