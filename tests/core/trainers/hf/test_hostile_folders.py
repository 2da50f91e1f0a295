"""Corrupt folders and files of models: each causes an error message, quickly, and never another exception."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import GrpoError, SettingsError
from grpo_core.foreign.readers import SILENCE, Readers
from grpo_core.lm.checkpoint import device_named
from grpo_core.trainers.hf.folder import look, vocabulary
from grpo_core.trainers.hf.loading import load
from grpo_core.trainers.hf.memory import need
from grpo_core.trainers.hf.reading import read_model
from tests.core.trainers.hf.test_folder import changed
from tests.core.trainers.hf.tiny import KINDS, small
from tests.core.trainers.hf.tiny_gguf import saved_gguf

ROUNDS = 60
"""Number of corrupt copies of each file."""
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    10**9,
    2**63,
    10**400,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "x",
    "../..",
    "\0",
    [],
    [[]],
    {},
    {"a": 1},
    "9" * 5000,
)
"""Unexpected values put into JSON files."""
SPOILED = ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "model.safetensors")


def header(folder: Path) -> dict[str, Any]:
    """Return the header of the weights."""
    content = (folder / "model.safetensors").read_bytes()
    read: dict[str, Any] = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    return read


def with_header(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Store the same weights with another header."""
    path, held = folder / "model.safetensors", header(folder)
    body = path.read_bytes()
    body = body[8 + struct.unpack("<Q", body[:8])[0] :]
    change(held)
    text = json.dumps(held).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def first(held: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a tensor."""
    entry: dict[str, Any] = held["model.layers.0.mlp.up_proj.weight"]
    return entry


def bytes_changed(path: Path, numbers: random.Random) -> None:
    """Change a few random bytes, truncate the file, or replace one of its JSON values."""
    content = bytearray(path.read_bytes())
    kind = numbers.randrange(3)
    if kind == 0:
        for _ in range(numbers.randint(1, 20)):
            content[numbers.randrange(min(len(content), 4000))] = numbers.randrange(256)
    elif kind == 1:
        content = content[: numbers.randrange(len(content))]
    elif path.suffix == ".json":
        read = json.loads(content)
        read[numbers.choice(sorted(read))] = numbers.choice(VALUES)
        content = bytearray(json.dumps(read).encode())
    else:
        content[:8] = struct.pack("<Q", numbers.choice((0, 1, 7, 2**20, 2**40, 2**63, 2**64 - 1)))
    path.write_bytes(bytes(content))


def looked_at(path: Path) -> bool:
    """Return whether a model can be inspected, including everything reported before it is loaded, or is refused with
    a message.
    """
    try:
        files = look(path)
        vocabulary(files)
        assert need(files, small(path)).sentence
        assert files.description
        assert files.parameters >= 0
    except GrpoError:
        return False
    return True


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_file_gives_a_sentence_or_a_model(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder, numbers, passed = tmp_path / "model", random.Random(name), 0
    shutil.copytree(folders["llama"], folder)
    original = (folder / name).read_bytes()
    for _ in range(ROUNDS):
        (folder / name).write_bytes(original)
        bytes_changed(folder / name, numbers)
        passed += looked_at(folder)
    assert passed < ROUNDS or name in ("generation_config.json", "tokenizer_config.json"), "nothing was noticed"


def test_a_spoiled_gguf_file_gives_a_sentence_or_a_model(folders: dict[str, Path], tmp_path: Path) -> None:
    path, numbers = saved_gguf(folders["llama"], tmp_path / "model.gguf"), random.Random(5)
    original = path.read_bytes()
    for _ in range(ROUNDS):
        path.write_bytes(original)
        bytes_changed(path, numbers)
        looked_at(path)


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a shape with an infinite side": lambda held: first(held).update(shape=[float("inf"), 32]),
    "a negative shape": lambda held: first(held).update(shape=[-64, 32]),
    "a shape larger than its bytes": lambda held: first(held).update(shape=[64_000_000, 32]),
    "offsets the wrong way round": lambda held: first(held).update(data_offsets=[8192, 0]),
    "infinite offsets": lambda held: first(held).update(data_offsets=[0, float("inf")]),
    "a tensor that is text": lambda held: held.update({"model.norm.weight": "x"}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_not_that_of_its_bytes_is_refused(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    with_header(folder, HEADERS[name])
    with pytest.raises(SettingsError, match=r"is not a safetensors file|is cut short"):
        look(folder)


@pytest.mark.parametrize("length", [0, 2**20, 100_000_001, 2**63, 2**64 - 1])
def test_a_header_of_another_length_is_refused(length: int, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    with pytest.raises(SettingsError, match="is not a safetensors file"):
        look(folder)


def test_lists_within_lists_without_end_are_no_gguf_file(tmp_path: Path) -> None:
    nested = struct.pack("<IQ", 9, 1) * 5000
    text = struct.pack("<Q", 1) + b"a" + struct.pack("<I", 9)
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text + nested)
    with pytest.raises(SettingsError, match="damaged or cut short"):
        look(tmp_path / "model.gguf")


@pytest.mark.parametrize("name", ["num_hidden_layers", "num_key_value_heads"])
def test_a_configuration_that_asks_for_a_billion_of_something_is_refused_before_it_is_built(
    name: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    changed(folder, "config.json", **{name: 10**9})
    with pytest.raises(SettingsError):
        load(look(folder), device_named("cpu"), "float32")


def normalizing(folder: Path) -> None:
    """Let the tokenizer repeat each letter “a” ten billion times."""
    repeat = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100_000}
    changed(folder, "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [repeat, repeat]})


def templated(template: str) -> Callable[[Path], object]:
    """Return a function that gives a folder a chat template."""
    return lambda folder: (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


ENDLESS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a normalizer": (normalizing, "killed by signal 6|ran out of memory"),
    "a long template": (templated("{{ 'a' * 10000000000 }}"), "ran out of memory"),
    "a slow template": (templated("{{ (10 ** 100000000) % 7 }}"), "did not respond for"),
}
"""What takes all memory or time when a prompt is encoded, and what is said."""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
@pytest.mark.quick_cases("a long template")
@pytest.mark.parametrize("name", ENDLESS)
def test_a_tokenizer_or_template_without_end_ends_the_reader_alone(
    name: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    spoil, sentence = ENDLESS[name]
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    assert read_model(Readers(own_process=True), folder)[0].parameters > 0
    spoil(folder)
    with pytest.raises(GrpoError, match=f"model could not be read: .*({sentence})"):
        read_model(Readers(own_process=True, silence=5 if "respond" in sentence else SILENCE), folder)


@pytest.mark.parametrize("end", ["x", 1.5, [[1]], {"a": 1}, True])
def test_an_end_token_that_is_no_number_is_refused(end: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    changed(folder, "generation_config.json", eos_token_id=end)
    with pytest.raises(SettingsError, match="eos_token_id"):
        load(look(folder), device_named("cpu"), "float32")


@pytest.mark.parametrize("kind", KINDS)
def test_a_spoiled_configuration_that_is_loaded_gives_a_sentence_or_a_model(
    kind: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder, numbers = tmp_path / "model", random.Random(kind)
    shutil.copytree(folders[kind], folder)
    original = (folder / "config.json").read_text("utf-8")
    names = sorted(json.loads(original))
    for _ in range(20):
        (folder / "config.json").write_text(original, encoding="utf-8")
        changed(folder, "config.json", **{numbers.choice(names): numbers.choice(VALUES)})
        if looked_at(folder):
            with contextlib.suppress(GrpoError):
                load(look(folder), device_named("cpu"), "float32")


@pytest.mark.parametrize("attention", ["someone/a-kernel", "flash_attention_2", "nothing"])
def test_an_implementation_that_the_configuration_names_is_not_fetched(
    attention: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["llama"], folder)
    changed(folder, "config.json", attn_implementation=attention, experts_implementation=attention)
    loaded = load(look(folder), device_named("cpu"), "float32")
    assert loaded.model.config._attn_implementation == "sdpa"
