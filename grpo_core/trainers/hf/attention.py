"""Names of the attention layers that adapters are applied to, by model family."""

from __future__ import annotations

from collections.abc import Iterable

from grpo_core.text import tr

TARGETS = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),  # Llama, Qwen, Mistral, Gemma
    ("c_attn", "attn.c_proj"),  # GPT-2
    ("query_key_value", "attention.dense"),  # GPT-NeoX, Pythia
    ("query_key_value", "self_attention.dense"),  # Bloom, Falcon
    ("qkv_proj", "o_proj"),  # Phi-3
    ("q_proj", "k_proj", "v_proj", "self_attn.dense"),  # Phi
    ("q_proj", "k_proj", "v_proj", "out_proj"),  # OPT, GPT-Neo
    ("attn_q", "attn_k", "attn_v", "attn_output"),  # GGUF
    ("attn_qkv", "attn_output"),  # GGUF of GPT-2
)
"""Suffixes of the names of the layers in a model's attention, by family."""
NO_TARGETS = tr(
    "no adapter fits this model, because its attention layers have other names; use 0 to train every weight"
)
"""Message if :func:`targets_in` finds no family."""


def targets_in(names: Iterable[str]) -> tuple[str, ...] | None:
    """Return the first family of :data:`TARGETS` whose suffixes all occur, or None if there is none.

    Args:
        names: names of layers, or of their tensors ending in ``.weight``.
    """
    known = [name.removesuffix(".weight") for name in names]
    return next((each for each in TARGETS if all(any(is_one(name, (end,)) for name in known) for end in each)), None)


def is_one(name: str, endings: tuple[str, ...]) -> bool:
    """Return whether the name of a layer, or of its tensor ending in ``.weight``, has one of ``endings``."""
    layer = name.removesuffix(".weight")
    return any(layer == ending or layer.endswith(f".{ending}") for ending in endings)
