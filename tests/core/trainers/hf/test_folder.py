"""Inspection of a model's folder: what it contains, and an error message for each way in which it is unusable or
corrupt; quickly, and never another exception.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grpo_core.errors import GrpoError, SettingsError
from grpo_core.foreign.readers import SILENCE, Readers
from grpo_core.lm.checkpoint import device_named
from grpo_core.trainers.hf.folder import look, vocabulary
from grpo_core.trainers.hf.loading import load
from grpo_core.trainers.hf.memory import need, require_space
from grpo_core.trainers.hf.reading import read_model
from tests.core.trainers.hf.tiny import KINDS, small
from tests.core.trainers.hf.tiny_gguf import saved_gguf


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


def of_length(folder: Path, length: int) -> None:
    """Say that the header has this length."""
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])


def header(tensor: Any = None, **changes: Any) -> Callable[[Path], object]:
    """Return a function that gives the same weights another header, with other facts about a tensor."""

    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        content = path.read_bytes()
        end = 8 + struct.unpack("<Q", content[:8])[0]
        held = json.loads(content[8:end])
        held["model.norm.weight"] = tensor or held["model.norm.weight"]
        held["model.layers.0.mlp.up_proj.weight"] |= changes
        text = json.dumps(held).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + content[end:])

    return change


OTHER_BYTES = "is not a safetensors file|is cut short"
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
    **{
        f"a header of {length} bytes": (partial(of_length, length=length), "is not a safetensors file")
        for length in (0, 2**20, 100_000_001, 2**63, 2**64 - 1)
    },
    "a shape with an infinite side": (header(shape=[float("inf"), 32]), OTHER_BYTES),
    "a negative shape": (header(shape=[-64, 32]), OTHER_BYTES),
    "a shape larger than its bytes": (header(shape=[64_000_000, 32]), OTHER_BYTES),
    "offsets the wrong way round": (header(data_offsets=[8192, 0]), OTHER_BYTES),
    "infinite offsets": (header(data_offsets=[0, float("inf")]), OTHER_BYTES),
    "a tensor that is text": (header(tensor="x"), OTHER_BYTES),
    "quantized": (lambda f: changed(f, "config.json", quantization_config={"bits": 4}), "weights are quantized"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_refused_in_a_sentence_before_anything_is_loaded(name: str, folder: Path) -> None:
    breaks, sentence = BROKEN[name]
    breaks(folder)
    with pytest.raises(SettingsError, match=sentence) as error:
        look(folder)
    assert str(folder) in str(error.value)


def test_a_model_that_needs_more_memory_than_there_is_is_refused(folder: Path) -> None:
    seventy_billion(folder)
    files = look(folder)
    assert files.parameters == pytest.approx(7e10, rel=1e-3)
    with pytest.raises(SettingsError, match=r"needs about \d+\.\d GB of memory, but \d+\.\d GB are free"):
        require_space(files, small(folder))
    with pytest.raises(SettingsError, match=r"needs about \d+\.\d GB of memory, but 24\.0 GB are free"):
        require_space(files, small(folder, model__device="cuda"), free=24e9)


@pytest.mark.parametrize(
    ("file", "values", "sentence"),
    [
        ("config.json", {"intermediate_size": 80}, r"mlp\.\w+\.weight has the shape"),
        ("config.json", {"num_hidden_layers": 10**9}, None),
        ("config.json", {"num_key_value_heads": 10**9}, None),
        *(
            ("generation_config.json", {"eos_token_id": end}, "eos_token_id")
            for end in ("x", 1.5, [[1]], {"a": 1}, True)
        ),
    ],
)
def test_what_the_configuration_cannot_ask_for_is_refused_before_it_is_built(
    file: str, values: dict[str, Any], sentence: str | None, folder: Path
) -> None:
    changed(folder, file, **values)
    with pytest.raises(SettingsError, match=sentence):
        load(look(folder), device_named("cpu"), "float32")


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_says_what_it_is(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders[kind], tmp_path / "model")
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
    endless = struct.pack("<Q", 1) + b"a" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000  # lists within lists
    for content, sentence in (
        (b"", "has 0 bytes"),
        (b"GGUF\x03\0\0\0" + b"\xff" * 30, "damaged or cut short"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + endless, "damaged or cut short"),
    ):
        (tmp_path / "model.gguf").write_bytes(content)
        with pytest.raises(SettingsError, match=sentence):
            look(tmp_path / "model.gguf")


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
def test_a_spoiled_file_gives_a_sentence_or_a_model(name: str, folder: Path) -> None:
    numbers, passed = random.Random(name), 0
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
def test_a_tokenizer_or_template_without_end_ends_the_reader_alone(name: str, folder: Path) -> None:
    spoil, sentence = ENDLESS[name]
    assert read_model(Readers(own_process=True), folder)[0].parameters > 0
    spoil(folder)
    with pytest.raises(GrpoError, match=f"model could not be read: .*({sentence})"):
        read_model(Readers(own_process=True, silence=5 if "respond" in sentence else SILENCE), folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_spoiled_configuration_that_is_loaded_gives_a_sentence_or_a_model(
    kind: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder, numbers = shutil.copytree(folders[kind], tmp_path / "model"), random.Random(kind)
    original = (folder / "config.json").read_text("utf-8")
    names = sorted(json.loads(original))
    for _ in range(20):
        (folder / "config.json").write_text(original, encoding="utf-8")
        changed(folder, "config.json", **{numbers.choice(names): numbers.choice(VALUES)})
        if looked_at(folder):
            with contextlib.suppress(GrpoError):
                load(look(folder), device_named("cpu"), "float32")


@pytest.mark.parametrize("attention", ["someone/a-kernel", "flash_attention_2", "nothing"])
def test_an_implementation_that_the_configuration_names_is_not_fetched(attention: str, folder: Path) -> None:
    changed(folder, "config.json", attn_implementation=attention, experts_implementation=attention)
    loaded = load(look(folder), device_named("cpu"), "float32")
    assert loaded.model.config._attn_implementation == "sdpa"
