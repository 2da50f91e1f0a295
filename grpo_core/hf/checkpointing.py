"""Gradient checkpointing (arXiv:1604.06174): activations are computed again in the backward pass instead of kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from grpo_core.errors import SettingsError
from grpo_core.hf.loading import libraries
from grpo_core.text import tr


def prepare_checkpointing(model: Any) -> None:
    """Nothing, if the layers of ``model`` can be computed again. They are once :func:`checkpointed` asks for it.

    Raises:
        SettingsError: transformers has no such thing for this model.
    """
    if not getattr(model, "supports_gradient_checkpointing", False) or not _layers(model):
        raise SettingsError("model.checkpointing", True, tr("transformers has none for this model; switch it off"))
    model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})


@contextlib.contextmanager
def checkpointed(model: Any, wanted: bool = True) -> Iterator[None]:
    """Forward passes within keep no activations inside the layers of ``model``, nor a cache.

    transformers checkpoints layers that are in training mode. Only the layers themselves are put into it, not what is
    inside, so that dropout stays off.
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
