"""Hooks on the layers of a model: cancellation of a pass between them, since a chunk of rows can take seconds, and
gradient checkpointing (arXiv:1604.06174), which recomputes activations in the backward pass instead of storing them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from grpo_core.errors import SettingsError
from grpo_core.text import tr
from grpo_core.trainers.hf.loading import libraries


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


def prepare_checkpointing(model: Any) -> None:
    """Check that ``model`` supports checkpointing, which :func:`checkpointed` then enables.

    Raises:
        SettingsError: transformers does not support checkpointing for this model.
    """
    if not getattr(model, "supports_gradient_checkpointing", False) or not _layers(model):
        raise SettingsError(
            "model.checkpointing", True, tr("transformers does not support it for this model; switch it off")
        )
    model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})


@contextlib.contextmanager
def checkpointed(model: Any, wanted: bool = True) -> Iterator[None]:
    """Context manager in which forward passes store no activations inside the layers of ``model``, and no cache.

    transformers checkpoints layers that are in training mode. Only the layers themselves are put into training mode,
    not their submodules, so that dropout stays off.
    """
    layers = _layers(model) if wanted else []
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False


def _layers(model: Any) -> list[Any]:
    transformers, _ = libraries()
    kind = transformers.modeling_layers.GradientCheckpointingLayer
    return [module for module in model.modules() if isinstance(module, kind)]
