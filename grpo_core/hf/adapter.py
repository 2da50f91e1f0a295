"""Low-rank adapters on a model's attention (LoRA, arXiv:2106.09685), by peft."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from grpo_core.errors import GrpoError
from grpo_core.hf.loading import libraries
from grpo_core.text import tr

TARGETS = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),  # Llama, Qwen, Mistral, Gemma
    ("c_attn", "attn.c_proj"),  # GPT-2
    ("query_key_value", "attention.dense"),  # GPT-NeoX, Pythia
    ("q_proj", "k_proj", "v_proj", "out_proj"),  # OPT, GPT-Neo
)
"""Endings of the names of the layers in a model's attention, by family; the first that are all there are taken."""


def with_adapter(model: Any, rank: int, alpha: float, seed: int) -> Any:
    """``model`` with a fresh adapter, which changes nothing until it is trained.

    Raises:
        GrpoError: the layers of its attention are not among those known here.
    """
    _, peft = libraries()
    names = [name for name, _ in model.named_modules()]
    targets = next((each for each in TARGETS if all(_ends_one(names, ending) for ending in each)), None)
    if targets is None:
        raise GrpoError(
            tr("No adapter fits this model: the layers of its attention have other names; train every weight instead.")
        )
    config = peft.LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=list(targets), lora_dropout=0.0, bias="none", task_type="CAUSAL_LM"
    )  # fmt: skip
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # of layers stored the other way round, which peft turns by itself
        torch.manual_seed(seed)
        adapted = peft.get_peft_model(model, config)
    return adapted.eval()


def _ends_one(names: list[str], ending: str) -> bool:
    return any(name == ending or name.endswith(f".{ending}") for name in names)
