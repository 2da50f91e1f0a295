"""Low-rank adapters (LoRA, arXiv:2106.09685) with peft: a new one on a model's attention, or one from a folder."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.errors import SettingsError, shortened
from grpo_core.text import tr
from grpo_core.trainers.hf.adapter_files import NO_TARGETS, WEIGHTS, AdapterFiles, targets_in
from grpo_core.trainers.hf.loading import libraries
from grpo_core.trainers.hf.refusal import refuse


def trainable(model: Any, files: AdapterFiles | None, *, rank: int, alpha: float, seed: int) -> Any:
    """Prepare ``model`` for training, either with an adapter whose weights are the only ones that require gradients, or
    with all weights trained.

    Args:
        model: the folder's model, without an adapter.
        files: the adapter in the folder; trained further, or merged if all weights are trained.
        rank: rank of the trained adapter; 0 to train every weight.
        alpha: ``alpha / rank`` is the factor of a new adapter's output.

    Raises:
        SettingsError: an adapter does not fit the model.
    """
    if files is not None:
        adapted = with_trained_adapter(model, files)
        return adapted if rank else adapted.merge_and_unload().requires_grad_(True)
    return with_adapter(model, rank, alpha, seed) if rank else model.requires_grad_(True)


def with_adapter(model: Any, rank: int, alpha: float, seed: int) -> Any:
    """Return ``model`` with a new adapter, which has no effect until it is trained.

    Raises:
        SettingsError: the names of the model's attention layers are not known.
    """
    targets = targets_in(name for name, _ in model.named_modules())
    if targets is None:
        raise SettingsError("model.adapter_rank", rank, NO_TARGETS)
    return _adapted(model, rank, alpha, list(targets), seed)


def with_trained_adapter(model: Any, files: AdapterFiles) -> Any:
    """Return ``model`` with the adapter of ``files``, for further training.

    Raises:
        SettingsError: the adapter's tensors do not fit the layers that they name.
    """
    _, peft = libraries()
    misfit = tr("its adapter does not fit its model ({reason})")
    try:
        adapted = _adapted(model, files.rank, files.alpha, list(files.layers), seed=0)
        fit = peft.set_peft_model_state_dict(adapted, load_file(files.path / WEIGHTS))
    except (OSError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise refuse(files.path, misfit.format(reason=shortened(reason))) from None
    left = [*fit.unexpected_keys, *(name for name in fit.missing_keys if "lora_" in name)]
    if left:
        raise refuse(files.path, misfit.format(reason=shortened(left[0])))
    return adapted


def spare_launches(model: Any) -> None:
    """Make each of peft's adapted layers compute in three operations instead of five, with fewer calls in Python. On a
    GPU these calls take longer than the arithmetic. The result is the same except for rounding.
    """
    _, peft = libraries()
    for layer in model.modules():
        if isinstance(layer, peft.tuners.lora.Linear):
            (name,) = layer.lora_A
            layer.forward = partial(_adapted_output, layer, layer.lora_A[name], layer.lora_B[name], layer.scaling[name])


def _adapted_output(layer: Any, first: Any, second: Any, scale: float, x: Tensor) -> Tensor:
    """Return the output (..., D') for ``x`` (..., D), plus ``scale`` · second(first(x)) unless the adapter is off."""
    down, up = first.weight, second.weight
    plain: Tensor = layer.base_layer(x)
    if layer.disable_adapters or layer.merged:
        return plain
    inner = F.linear(x if torch.is_autocast_enabled(x.device.type) else x.to(down.dtype), down)
    flat = plain.flatten(0, -2).to(inner.dtype)
    return torch.addmm(flat, inner.flatten(0, -2), up.t(), alpha=scale).view(plain.shape).to(plain.dtype)


def _adapted(model: Any, rank: int, alpha: float, layers: list[str], seed: int) -> Any:
    _, peft = libraries()
    config = peft.LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=layers, lora_dropout=0.0, bias="none", task_type="CAUSAL_LM"
    )
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # about layers stored transposed, which peft handles
        torch.manual_seed(seed)
        return peft.get_peft_model(model, config).eval()
