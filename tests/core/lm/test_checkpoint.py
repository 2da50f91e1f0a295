"""The shipped checkpoint, and deliberately damaged ones: each causes one error message, and the model is unchanged."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file

from grpo_core.commands.cli import main
from grpo_core.config import Model
from grpo_core.errors import SettingsError
from grpo_core.lm import problems
from grpo_core.lm.checkpoint import is_checkpoint, load, save_model, started
from grpo_core.lm.checkpoint_file import read_checkpoint
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.numpy_engine.numpy_policy import started as numpy_started
from grpo_core.lm.numpy_engine.weights import shapes
from grpo_core.lm.sampler import sample
from grpo_core.lm.vocabulary import VOCABULARY, decode
from grpo_core.shipped import CHECKPOINT, resource
from tests.core.lm.models import CPU, TINY, lively, requested, tokens_of

Tensors = dict[str, torch.Tensor]


def said_by_the_shipped(asked: list[problems.Prompt], numbers: np.random.Generator) -> list[problems.Verdict]:
    """Return the verdict on the shipped model's answer to each prompt."""
    request = requested(tokens_of(prompt.text for prompt in asked), numbers.random((len(asked), 24)))
    done = sample(started(Model(), 0, CPU), request)
    return [problems.verdict(p.text, decode(tokens)) for p, tokens in zip(asked, done.tokens, strict=True)]


def test_the_shipped_checkpoint_starts_at_35_to_60_percent_and_can_calculate() -> None:
    numbers = np.random.default_rng(3)
    asked = [problems.drawn("mixed", numbers, held_out=True) for _ in range(600)]
    verdicts = said_by_the_shipped(asked, numbers)
    assert 0.35 < np.mean([bool(verdict.right) for verdict in verdicts]) < 0.60
    said = Counter(verdict.words for verdict in verdicts)
    slips = sum(count for words, count in said.items() if "slip" in words or "not a working" in words)
    assert slips / 600 < 0.03, said


def test_difficulties_are_what_they_are_called() -> None:
    numbers, rate = np.random.default_rng(4), {}
    for kind in problems.FAMILIES:
        verdicts = said_by_the_shipped([problems.drawn(kind, numbers) for _ in range(200)], numbers)
        rate[kind] = np.mean([bool(verdict.right) for verdict in verdicts])
    assert rate["easy"] > 0.95
    assert 0.35 < rate["sweet_spot"] < 0.65
    assert 0.1 < rate["hard"] < 0.4
    assert rate["hopeless"] < 0.02


def test_a_checkpoint_is_read_back(tmp_path: Path) -> None:
    model, path = lively(), tmp_path / "mine.safetensors"
    save_model(model, path, {"recipe": "none"})
    other = initialized(Transformer(TINY), 9)
    assert load(other, path)["recipe"] == "none"
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


ANOTHER, INFINITE = "its tensors are not those of this model", "some of its weights are not finite numbers"
DAMAGES: dict[str, tuple[Callable[[Tensors], object], str]] = {
    "one is missing": (lambda tensors: tensors.pop("norm.bias"), ANOTHER),
    "one too many": (lambda tensors: tensors.update({"extra": torch.zeros(2)}), ANOTHER),
    "another shape": (lambda tensors: tensors.update({"norm.bias": torch.zeros(3)}), ANOTHER),
    "not a number": (lambda tensors: tensors["norm.bias"][:1].fill_(float("nan")), INFINITE),
    "too large": (
        lambda tensors: tensors.update({"norm.bias": torch.full((16,), 1e300, dtype=torch.float64)}),
        INFINITE,
    ),
}


def refused(path: Path, said: str, size: Model = TINY) -> None:
    model = initialized(Transformer(size), 3)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with pytest.raises(SettingsError, match=said) as error:
        load(model, path)
    assert error.value.field == "model.checkpoint" and str(path) in str(error.value)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize("name", DAMAGES)
def test_tensors_that_cannot_be_used_are_refused(tmp_path: Path, name: str) -> None:
    damage, said = DAMAGES[name]
    path = tmp_path / "mine.safetensors"
    tensors = {key: weight.clone() for key, weight in lively().state_dict().items()}
    damage(tensors)
    save_file(tensors, path)
    refused(path, said)


def test_a_model_of_other_characters_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    save_model(lively(), path, {"vocabulary": "".join(VOCABULARY[::-1])})
    refused(path, "it was trained on other characters")


@pytest.mark.parametrize("said", ["[]", "{}", "nonsense", '{"layers": Infinity}', '{"layers": null}', "7"])
def test_a_size_that_says_nothing_leaves_the_shapes_to_decide(tmp_path: Path, said: str) -> None:
    path = tmp_path / "mine.safetensors"
    save_file(lively().state_dict(), path, {"size": said})
    assert load(Transformer(TINY), path)["size"] == said
    refused(path, ANOTHER, Model())


@pytest.mark.parametrize("field", ["layers", "width", "heads", "context"])
def test_another_size_is_refused_and_the_right_one_named(tmp_path: Path, field: str) -> None:
    path = tmp_path / "mine.safetensors"
    save_model(lively(), path, {})
    change: dict[str, Any] = {field: 8}
    other = dataclasses.replace(TINY, **change)
    refused(path, "it belongs to a model with layers 2, width 16, heads 2, context 48", other)


WHOLE = save({name: weight.contiguous() for name, weight in lively().state_dict().items()}, {})


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_short_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.safetensors"
    path.write_bytes(WHOLE[:cut])
    refused(path, "it is not a safetensors file")


@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=300), length=st.none() | st.integers(0, 2**64 - 1))
def test_noise_is_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes, length: int | None) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.safetensors"
    path.write_bytes(noise if length is None else length.to_bytes(8, "little") + noise)
    refused(path, "it is not a safetensors file|its tensors are not those of this model")


@pytest.mark.parametrize("name", ["none.safetensors", "", "a\0b", "~nobody-of-this-name/x", "x" * 5000])
def test_a_path_that_leads_nowhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"^model\.checkpoint cannot be"):
        started(Model(layers=1, width=8, heads=1, checkpoint=name), 0, CPU)


def test_half_precision_weights_are_read_as_float32(tmp_path: Path) -> None:
    path, model = tmp_path / "mine.safetensors", lively()
    save_file({name: weight.half() for name, weight in model.state_dict().items()}, path)
    other = Transformer(TINY)
    load(other, path)
    for name, weight in other.state_dict().items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, model.state_dict()[name].half().float())


def test_the_shipped_file_says_what_it_is_and_how_it_was_made() -> None:
    path = resource(CHECKPOINT)
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
    assert json.loads(about["size"]) == {"layers": 2, "width": 64, "heads": 4, "context": 64}
    assert about["vocabulary"] == "".join(VOCABULARY)
    assert len(about.keys() - {"size", "vocabulary"}) > 0, "and its recipe"
    assert all(weight.dtype == torch.float32 for weight in load_file(path).values())
    assert path.stat().st_size < 1_000_000


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices that are files")
@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "pipe":
        os.mkfifo(path)
    refused(path, "it is not a regular file")
    assert not is_checkpoint(path)


def test_a_file_with_holes_that_stands_for_a_huge_model_is_not_loaded(tmp_path: Path) -> None:
    path, size = tmp_path / "huge.safetensors", 1 << 33
    head = json.dumps({"huge": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(8 + len(head) + size)
    refused(path, ANOTHER)


@pytest.mark.parametrize("content", [b"", b"my thesis", b"\0" * 40], ids=["empty", "text", "zeros"])
def test_what_is_no_checkpoint_is_not_replaced_even_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    assert main(["pretrain", "--steps", "1", "--out", str(path), "--force"]) == 2
    assert "is not a checkpoint" in capsys.readouterr().err
    assert [(left.name, left.read_bytes()) for left in tmp_path.iterdir()] == [("thesis.txt", content)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_weights_are_read_as_the_library_of_the_format_reads_them(tmp_path: Path, dtype: torch.dtype) -> None:
    path, size = tmp_path / "mine.safetensors", TINY
    save_file({name: weight.to(dtype) for name, weight in lively().state_dict().items()}, path, {"by": "hand"})
    weights, about = read_checkpoint(path, size, shapes(size))
    assert about == {"by": "hand"}
    expected = load_file(path)
    assert weights.keys() == expected.keys()
    for name, weight in weights.items():
        assert weight.dtype == np.float32 and np.array_equal(weight, expected[name].float().numpy()), name


def test_both_engines_start_from_the_same_shipped_weights() -> None:
    by_torch, by_numpy = started(Model(), 0, CPU), numpy_started(Model(), 0)
    for name, weight in by_torch.named_parameters():
        assert np.array_equal(weight.detach().numpy(), by_numpy.named[name]), name


def test_whole_numbers_in_place_of_weights_are_another_models(tmp_path: Path) -> None:
    path = tmp_path / "counts.safetensors"
    save_file({"counts": torch.arange(3), "seen": torch.ones(2, dtype=torch.bool)}, path)
    refused(path, ANOTHER)
