"""Tiny random models in folders, as transformers saves them: Llama, Qwen and GPT-2 with a tokenizer of bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from grpo_core.config import Settings, folder_settings
from grpo_core.trainers.hf.loading import libraries

KINDS = ("llama", "qwen2", "gpt2")
END, CHAT = "<|im_end|>", "<|im_start|>"
TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def saved(folder: Path, kind: str, *, lively: float = 8.0) -> Path:
    """Save a model of ``kind`` in ``folder``, with weights so large that distributions vary from position to
    position.
    """
    return saved_from(folder, lambda transformers, vocabulary: _config(transformers, kind, vocabulary), lively=lively)


def saved_from(folder: Path, config: Callable[[Any, int], Any], *, lively: float = 8.0) -> Path:
    """Save a model with any configuration. ``config`` takes transformers and the size of the vocabulary."""
    transformers, _ = libraries()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = config(transformers, _tokenizer(folder))
    torch.manual_seed(0)
    two_parts = getattr(wanted, "is_encoder_decoder", False)
    made = transformers.AutoModelForSeq2SeqLM if two_parts else transformers.AutoModelForCausalLM
    model = made.from_config(wanted).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(lively)
    model.save_pretrained(folder)
    generation = {"eos_token_id": [0, 1], "pad_token_id": 0, "top_k": 20, "temperature": 0.6}
    (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return folder


def small(folder: Path, **changes: Any) -> Settings:
    """Return settings with two prompts and four completions of eight tokens, measured rarely."""
    base = {
        "task.prompts": 2,
        "learner.group_size": 4,
        "task.max_tokens": 8,
        "task.held_out": 2,
        "task.accuracy_every": 1000,
        "task.form": "[a-z]",
        "task.form_weight": 1.0,
        "model.threads": 1,
        "model.snapshot_every": 3,
    }
    return folder_settings(str(folder)).replace({**base, **{path.replace("__", "."): v for path, v in changes.items()}})


def _config(transformers: Any, kind: str, vocabulary: int) -> Any:
    ends = {"eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 0}
    if kind == "gpt2":
        return transformers.GPT2Config(vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=4, n_positions=256, **ends)
    families = {"llama": transformers.LlamaConfig, "qwen2": transformers.Qwen2Config}
    return families[kind](
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=kind == "llama",
        **ends,
    )


def _tokenizer(folder: Path) -> int:
    """Save a tokenizer of single bytes with a chat template. Returns the size of its vocabulary."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    transformers, _ = libraries()
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([END, "<|endoftext|>", CHAT, *letters])}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    outer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|endoftext|>", pad_token=END, additional_special_tokens=[CHAT]
    )
    outer.chat_template = TEMPLATE
    outer.save_pretrained(folder)
    return len(vocabulary)
