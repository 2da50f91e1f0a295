"""Every common family of models: a tiny one is trained with an adapter and with every weight, or refused with a
message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.errors import SettingsError
from grpo_core.trainers.hf.learner import FolderLearner
from tests.core.trainers.hf.tiny import saved_from, small

ENDS = {"eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 0}
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
FOUR_EXPERTS = {"num_experts_per_tok": 2}


def like_llama(name: str, **more: Any) -> Callable[[Any, int], Any]:
    """Return a configuration whose fields are named as Llama's. A value of None leaves a field out."""
    fields = {key: value for key, value in {**SIZES, **ENDS, **more}.items() if value is not None}
    return lambda transformers, vocabulary: getattr(transformers, name)(vocab_size=vocabulary, **fields)


def otherwise(name: str, **fields: Any) -> Callable[[Any, int], Any]:
    """Return a configuration whose fields have other names."""
    return lambda transformers, vocabulary: getattr(transformers, name)(vocab_size=vocabulary, **fields, **ENDS)


FAMILIES: dict[str, Callable[[Any, int], Any]] = {
    "Bloom": otherwise("BloomConfig", hidden_size=32, n_layer=2, n_head=4),
    "Cohere": like_llama("CohereConfig"),
    "Falcon": otherwise("FalconConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=4),
    "Gemma": like_llama("GemmaConfig", head_dim=8),
    "Gemma 2": like_llama("Gemma2Config", head_dim=8, sliding_window=64),
    "Gemma 3": like_llama("Gemma3TextConfig", head_dim=8, sliding_window=64),
    "GLM-4": like_llama("Glm4Config", head_dim=8),
    "GPT-2": otherwise("GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=256),
    "GPT-NeoX": like_llama("GPTNeoXConfig", num_key_value_heads=None),
    "Granite": like_llama("GraniteConfig"),
    "LFM2": like_llama("Lfm2Config", layer_types=["conv", "full_attention"]),
    "Llama": like_llama("LlamaConfig"),
    "Mamba": otherwise("MambaConfig", hidden_size=32, num_hidden_layers=2, state_size=8),
    "Mistral": like_llama("MistralConfig"),
    "Mixtral": like_llama("MixtralConfig", num_local_experts=4, **FOUR_EXPERTS),
    "OLMo 2": like_llama("Olmo2Config"),
    "OPT": otherwise(
        "OPTConfig",
        hidden_size=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
        word_embed_proj_dim=32,
    ),
    "Phi": like_llama("PhiConfig"),
    "Phi-3": like_llama("Phi3Config"),
    "Qwen2": like_llama("Qwen2Config"),
    "Qwen3": like_llama("Qwen3Config", head_dim=8),
    "Qwen3-MoE": like_llama("Qwen3MoeConfig", head_dim=8, num_experts=4, moe_intermediate_size=32, **FOUR_EXPERTS),
    "SmolLM3": like_llama("SmolLM3Config"),
    "StableLM": like_llama("StableLmConfig"),
    "T5": otherwise("T5Config", d_model=32, d_ff=64, num_layers=2, num_heads=4, d_kv=8, decoder_start_token_id=0),
}
REFUSED = {"LFM2": "recurrent state", "Mamba": "recurrent state", "T5": "encoder-decoder model"}
"""Families that are refused, and part of the error message."""
TABLE = Path("docs/models.md")
TRAINS, NOT = "trains", "refused: "


@pytest.mark.quick_cases("Phi-3-4", "Qwen3-MoE-0", "Mamba-0", "Bloom-4")
@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_trains_or_is_refused_in_words(family: str, rank: int, tmp_path: Path) -> None:
    folder = saved_from(tmp_path / "model", FAMILIES[family])
    settings = small(folder, model__adapter_rank=rank, optimizer__learning_rate=1e-3)
    if family in REFUSED:
        with pytest.raises(SettingsError, match=REFUSED[family]):
            FolderLearner(settings)
        return
    step = next(FolderLearner(settings))
    assert np.isfinite(step.logp).all() and step.measurements["grad_norm"] > 0
    sampled, trained = step.sampling_logp, step.logp[0]
    assert sampled is not None and np.abs(sampled - trained)[step.mask].max() < 1e-3, "it is sampled as it is scored"
    assert np.abs(step.logp[-1] - step.logp[0]).max() > 1e-4, "the update has changed the weights"


def test_the_table_of_families_is_that_of_the_documentation() -> None:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    told = {row[0]: row[1] for row in rows if row[0] in FAMILIES}
    assert told.keys() == FAMILIES.keys()
    for family, words in told.items():
        assert words == TRAINS or (family in REFUSED and words.startswith(NOT)), family
        assert (words == TRAINS) is (family not in REFUSED), family
