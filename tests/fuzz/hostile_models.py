"""Malicious folders of models, built to bring down whatever inspects them, without any model library."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.hostile_sources import ENDLESS, NUMBERS, instead, one_instead

Make = Callable[[Path], Path]
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 4,
    "hidden_size": 2,
    "num_hidden_layers": 1,
    "max_position_embeddings": 64,
    "license": "mit",
    "eos_token_id": 1,
    "num_attention_heads": 1,
}
TOKENIZER: dict[str, Any] = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}, "merges": []},
    "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 3, "content": "<end>"}],
    "normalizer": None,
}
SHAPES: dict[str, list[int]] = {"model.embed_tokens.weight": [4, 2], "model.layers.0.self_attn.q_proj.weight": [2, 2]}
ADAPTER: dict[str, Any] = {
    "peft_type": "LORA",
    "r": 1,
    "lora_alpha": 2,
    "base_model_name_or_path": "base",
    "target_modules": ["q_proj"],
}
PAIR = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
GGUF = b"GGUF" + struct.pack("<I", 3)


def weights(shapes: dict[str, list[int]], **changes: Any) -> bytes:
    """Return a safetensors file of zeros."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * shape[0] * shape[1]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end], **changes}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


def sound(folder: Path) -> Path:
    """Create a folder with a model that can be inspected."""
    home = folder / "model"
    home.mkdir(parents=True)
    (home / "config.json").write_text(json.dumps(CONFIG))
    (home / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (home / "generation_config.json").write_text(json.dumps({"eos_token_id": 1, "top_k": 20}))
    (home / "README.md").write_text("---\nlicense: mit\n---\n")
    (home / "model.safetensors").write_bytes(weights(SHAPES))
    return home


def adapter(folder: Path) -> Path:
    """Create an adapter with its model next to it."""
    sound(folder).rename(folder / "base")
    home = folder / "adapter"
    home.mkdir()
    (home / "adapter_config.json").write_text(json.dumps(ADAPTER))
    pair = {f"{PAIR}A.weight": [1, 2], f"{PAIR}B.weight": [2, 1]}
    (home / "adapter_model.safetensors").write_bytes(weights(pair))
    return home


def changed(folder: Path, file: str, name: str, value: Any) -> Path:
    """Change a value in a JSON file of the folder. For an adapter, the file is the adapter's configuration."""
    home = adapter(folder) if file.startswith("adapter") else sound(folder)
    read = json.loads((home / file).read_text())
    place = read["model"] if name in ("vocab", "merges") else read
    place[name] = value
    (home / file).write_text(json.dumps(read))
    return home


def replaced(folder: Path, file: str, what: str) -> Path:
    home = adapter(folder) if file.startswith("adapter") else sound(folder)
    instead(home / file, what)
    return home


def content(folder: Path, file: str, data: bytes) -> Path:
    home = adapter(folder) if file.startswith("adapter") else sound(folder)
    (home / file).write_bytes(data)
    return home


def enormous() -> bytes:
    """Return a tokenizer whose vocabulary has a million words."""
    return b'{"model": {"vocab": {' + b",".join(b'"%d": %d' % (n, n) for n in range(1_000_000)) + b"}}}"


def index(folder: Path, value: Any) -> Path:
    home = sound(folder)
    (home / "model.safetensors").unlink()
    (home / "model.safetensors.index.json").write_text(json.dumps(value))
    return home


def gguf(folder: Path, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.gguf").write_bytes(data)
    return folder / "model.gguf"


FILES = (
    "config.json",
    "tokenizer.json",
    "generation_config.json",
    "README.md",
    "model.safetensors",
    "adapter_config.json",
    "adapter_model.safetensors",
)
DEEP = b'{"model_type": ' + b"[" * 200_000

# What is large is made with its folder, not whenever a test imports this module.
FOLDERS: dict[str, Make] = {
    "sound": sound,
    "sound adapter": adapter,
    **{f"{file} is {what}": partial(replaced, file=file, what=what) for file in FILES for what in ENDLESS},
    **{
        f"{file}: {name} is {word}": partial(changed, file=file, name=name, value=NUMBERS[word])
        for file, name, words in (
            ("generation_config.json", "eos_token_id", ("million", "word", "10^400", "NaN", "object")),
            ("generation_config.json", "top_k", ("million", "10^400", "NaN", "object")),
            ("generation_config.json", "temperature", ("million", "infinite")),
            ("config.json", "vocab_size", ("10^400", "NaN", "million", "word")),
            ("config.json", "hidden_size", ("10^9", "object")),
            ("config.json", "num_hidden_layers", ("10^9", "-5", "NaN", "10^400")),
            ("config.json", "num_attention_heads", ("2^63", "NaN")),
            ("config.json", "max_position_embeddings", ("10^400", "-5", "NaN", "word")),
            ("config.json", "model_type", ("million", "10^9", "null")),
            ("config.json", "license", ("million", "object")),
            ("tokenizer.json", "vocab", ("million", "word", "null", "10^9")),
            ("tokenizer.json", "added_tokens", ("million", "10^9", "object")),
            ("tokenizer.json", "decoder", ("million", "word")),
            ("adapter_config.json", "r", ("10^9", "NaN", "million")),
            ("adapter_config.json", "lora_alpha", ("10^400", "NaN", "-5")),
            ("adapter_config.json", "base_model_name_or_path", ("million", "10^9")),
            ("adapter_config.json", "target_modules", ("million", "object")),
        )
        for word in words
    },
    **{f"{file} is deep": partial(content, file=file, data=DEEP) for file in FILES},
    **{f"{file} is empty": partial(content, file=file, data=b"") for file in FILES},
    "a vocabulary of a million": lambda folder: content(folder, "tokenizer.json", enormous()),
    "a token of a large number": partial(changed, file="tokenizer.json", name="vocab", value={"a": 2**62, "b": -1}),
    "a base elsewhere": partial(
        changed, file="adapter_config.json", name="base_model_name_or_path", value="../../../../etc"
    ),
    "code of its own": partial(changed, file="config.json", name="auto_map", value={"AutoModel": "x.Y"}),
    "a header of 2^60 bytes": partial(content, file="model.safetensors", data=struct.pack("<Q", 2**60)),
    "a header of 90 MB": lambda folder: content(
        folder, "model.safetensors", struct.pack("<Q", 90_000_000) + b"[" * 90_000_000
    ),
    "a million tensors": lambda folder: content(
        folder, "model.safetensors", weights({f"t{n}": [0, 0] for n in range(1_000_000)})
    ),
    "shapes beyond the bytes": partial(content, file="model.safetensors", data=weights(SHAPES, shape=[2**62, 2**62])),
    "shapes of many axes": partial(content, file="model.safetensors", data=weights(SHAPES, shape=[1] * 100_000)),
    "offsets of words": partial(content, file="model.safetensors", data=weights(SHAPES, data_offsets="ab")),
    "a kind nobody knows": partial(content, file="model.safetensors", data=weights(SHAPES, dtype="F" * 1000)),
    "a card of 50 MB": lambda folder: content(folder, "README.md", b"license:" + b" " * 50_000_000),
    "an index of places outside": partial(index, value={"weight_map": {"a": "../../../etc/passwd"}}),
    "an index of a million": lambda folder: index(
        folder, {"weight_map": {str(n): f"{n}.st" for n in range(1_000_000)}}
    ),
    "an index of numbers": partial(index, value={"weight_map": {"a": 5}}),
    "an index that is a list": partial(index, value=[1]),
    "gguf: nothing more": partial(gguf, data=GGUF),
    "gguf: counts of 2^63": partial(gguf, data=GGUF + struct.pack("<QQ", 2**63, 2**63)),
    "gguf: many entries": partial(gguf, data=GGUF + struct.pack("<QQ", 0, 60_000) + bytes(1_000_000)),
    "gguf: a key of 2^40 bytes": partial(gguf, data=GGUF + struct.pack("<QQQ", 0, 1, 2**40)),
    "gguf: lists in lists": partial(
        gguf, data=GGUF + struct.pack("<QQQ", 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 9, 1) * 20_000
    ),
    "gguf: a list of 2^31": partial(
        gguf, data=GGUF + struct.pack("<QQQ", 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 0, 2**31)
    ),
    **{f"gguf: {what}": partial(one_instead, name="model.gguf", what=what) for what in ENDLESS},
}


if __name__ == "__main__":
    for count, (each, make) in enumerate(FOLDERS.items()):
        place = Path(sys.argv[1]) / f"{count:03d}"
        if each.startswith("gguf"):
            place.mkdir(parents=True)
        print(json.dumps([each, str(make(place))]), flush=True)
