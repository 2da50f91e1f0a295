"""The tiny Llama as a GGUF file of version 3, as llama.cpp writes it in float32 (ggml's ``docs/gguf.md``)."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from tests.core.trainers.hf.tiny import TEMPLATE

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
"""Layer of transformers' Llama -> its name in a GGUF file."""
ALIGNMENT = 32


def saved_gguf(folder: Path, path: Path) -> Path:
    """Write the Llama in ``folder`` to ``path`` as GGUF."""
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text("utf-8"))
    pieces = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    metadata = {
        "general.architecture": "llama",
        "general.license": "apache-2.0",
        "llama.block_count": 2,
        "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": groups,
        "llama.rope.freq_base": 10_000.0,
        "llama.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "llama.rope.dimension_count": config["hidden_size"] // heads,
        "llama.vocab_size": config["vocab_size"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": sorted(pieces, key=pieces.get),
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.token_type": [3 if piece.startswith("<|") else 1 for piece in sorted(pieces, key=pieces.get)],
        "tokenizer.chat_template": TEMPLATE,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
    }
    tensors = {}
    for name, table in load_file(folder / "model.safetensors").items():
        if "q_proj" in name or "k_proj" in name:  # rotary pairs are adjacent there, half apart here
            each = heads if "q_proj" in name else groups
            table = table.reshape(each, 2, len(table) // each // 2, -1).swapaxes(1, 2).reshape(table.shape)
        tensors[_named(name)] = np.ascontiguousarray(table, dtype=np.float32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_text(key) + _value(value) for key, value in metadata.items())
    body = b""
    for name, table in tensors.items():
        shape = table.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(body))
        body += table.tobytes() + bytes(-table.nbytes % ALIGNMENT)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + body)
    return path


def _named(name: str) -> str:
    layer = name.removesuffix(".weight")
    if layer.startswith("model.layers."):
        _, _, number, rest = layer.split(".", 3)
        return f"blk.{number}.{NAMES[rest]}.weight"
    return f"{NAMES[layer]}.weight"


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if value and isinstance(value[0], int):
        return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_text(text) for text in value)
