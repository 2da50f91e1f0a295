"""Low-rank adapters on a model's attention (LoRA, arXiv:2106.09685), by peft."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from grpo_core.errors import SettingsError
from grpo_core.hf.attention import NO_TARGETS, targets_in
from grpo_core.hf.loading import libraries


def with_adapter(model: Any, rank: int, alpha: float, seed: int) -> Any:
    """``model`` with a fresh adapter, which changes nothing until it is trained.

    Raises:
        SettingsError: the layers of its attention are not among those known here.
    """
    _, peft = libraries()
    targets = targets_in(name for name, _ in model.named_modules())
    if targets is None:
        raise SettingsError("model.adapter_rank", rank, NO_TARGETS)
    config = peft.LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=list(targets), lora_dropout=0.0, bias="none", task_type="CAUSAL_LM"
    )  # fmt: skip
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # of layers stored the other way round, which peft turns by itself
        torch.manual_seed(seed)
        adapted = peft.get_peft_model(model, config)
    return adapted.eval()
