"""Inspection of a model's folder: what it contains, and an error message for each way in which it is unusable."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from grpo_core.errors import SettingsError
from grpo_core.lm.checkpoint import device_named
from grpo_core.trainers.hf.folder import look, vocabulary
from grpo_core.trainers.hf.loading import load
from grpo_core.trainers.hf.memory import need, require_space
from tests.core.trainers.hf.tiny import KINDS, small


def changed(folder: Path, name: str, **values: object) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), encoding="utf-8")


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def seventy_billion(folder: Path) -> None:
    """Write a header that names tensors of seventy billion numbers, in a sparse file of that size."""
    rows = 70_000_000_000 // 8192 // 2
    half, count = 4 * rows * 8192, 2 * rows * 8192
    entries = {
        f"model.layers.{layer}.mlp.up_proj.weight": {
            "dtype": "F32",
            "shape": [rows, 8192],
            "data_offsets": [layer * half, (layer + 1) * half],
        }
        for layer in range(2)
    }
    header = json.dumps(entries).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + 4 * count)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no configuration": (lambda f: (f / "config.json").unlink(), "does not contain config.json"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "does not contain tokenizer.json"),
    "a tokenizer of 0 bytes": (lambda f: cut(f / "tokenizer.json", 0), "tokenizer.json is empty or not JSON"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "does not contain model.safetensors"),
    "pickle": (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "stored as pickle"),
    "only an adapter": (
        lambda f: (f / "model.safetensors").rename(f / "adapter_model.safetensors"),
        "contains only an adapter",
    ),
    "weights of 0 bytes": (lambda f: cut(f / "model.safetensors", 0), "has 0 bytes"),
    "weights cut short": (lambda f: cut(f / "model.safetensors", 5000 + 2000), "is (cut short|not a safetensors file)"),
    "no safetensors": (lambda f: (f / "model.safetensors").write_bytes(b"x" * 100), "is not a safetensors file"),
    "wrong shapes": (lambda f: changed(f, "config.json", hidden_size=48), r"has the shape \(\d+, 32\)"),
    "its own code": (lambda f: changed(f, "config.json", auto_map={"AutoModel": "x.Y"}), "asks for its own code"),
    "code in the tokenizer": (
        lambda f: changed(f, "tokenizer_config.json", auto_map={"AutoTokenizer": "x.Y"}),
        "asks for its own code",
    ),
    "quantized": (lambda f: changed(f, "config.json", quantization_config={"bits": 4}), "weights are quantized"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_refused_in_a_sentence_before_anything_is_loaded(
    name: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    breaks, sentence = BROKEN[name]
    breaks(folder)
    with pytest.raises(SettingsError, match=sentence) as error:
        look(folder)
    assert str(folder) in str(error.value)


def test_a_model_that_needs_more_memory_than_there_is_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    seventy_billion(folder)
    files = look(folder)
    assert files.parameters == pytest.approx(7e10, rel=1e-3)
    with pytest.raises(SettingsError, match=r"needs about \d+\.\d GB of memory, but \d+\.\d GB are free"):
        require_space(files, small(folder))
    with pytest.raises(SettingsError, match=r"needs about \d+\.\d GB of memory, but 24\.0 GB are free"):
        require_space(files, small(folder, model__device="cuda"), free=24e9)


def test_tensors_that_the_configuration_does_not_ask_for_are_refused_before_they_are_read(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    changed(folder, "config.json", intermediate_size=80)
    with pytest.raises(SettingsError, match=r"mlp\.\w+\.weight has the shape"):
        load(look(folder), device_named("cpu"), "float32")


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_says_what_it_is(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders[kind], folder)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# A model\n", encoding="utf-8")
    files = look(folder)
    assert files.kind == kind
    assert files.licence == "apache-2.0"
    assert files.context == 256
    loaded = load(files, device_named("cpu"), "float32")
    assert files.parameters == sum(weight.numel() for weight in loaded.model.parameters())
    texts = vocabulary(files)
    for text in ("7", "a", " "):
        (token,) = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert texts[token] == text
    assert texts[0] == "<|im_end|>"


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_that_an_adapter_trains_are_known_beforehand(kind: str, folders: dict[str, Path]) -> None:
    from grpo_core.trainers.hf.folder_policy import FolderPolicy

    settings = small(folders[kind])
    assert FolderPolicy(settings).trained_parameters == need(look(folders[kind]), settings).trained


def test_the_digest_changes_with_the_weights_and_not_with_the_name(folders: dict[str, Path], tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        shutil.copytree(folders["gpt2"], folder)
    assert look(one).digest == look(other).digest
    weights = other / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    assert look(one).digest != look(other).digest


def test_what_is_neither_a_folder_nor_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"GGML....")
    with pytest.raises(SettingsError, match="neither a folder nor a GGUF file"):
        look(tmp_path / "file")
    with pytest.raises(SettingsError, match="no such folder"):
        look(tmp_path / "nothing")
    for content, sentence in ((b"", "has 0 bytes"), (b"GGUF\x03\0\0\0" + b"\xff" * 30, "damaged or cut short")):
        (tmp_path / "model.gguf").write_bytes(content)
        with pytest.raises(SettingsError, match=sentence):
            look(tmp_path / "model.gguf")
