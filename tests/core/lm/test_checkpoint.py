"""The shipped checkpoint, files that are not checkpoints, and the creation of one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from grpo_core.commands.cli import main
from grpo_core.config import Model
from grpo_core.errors import Cancelled, GrpoError, SettingsError
from grpo_core.lm import problems
from grpo_core.lm.checkpoint import device_named, load, save_model, started
from grpo_core.lm.interface import SamplingRequest
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.pretraining import Recipe, batch, pretrained
from grpo_core.lm.sampler import sample
from grpo_core.lm.vocabulary import decode, encode, padded
from grpo_core.progress import unpolled
from grpo_core.shipped import CHECKPOINT, resource
from tests.core.lm.models import TINY, lively
from tests.polls import cancelled_at


def test_the_shipped_checkpoint_starts_at_35_to_60_percent_and_can_calculate() -> None:
    assert resource(CHECKPOINT).stat().st_size < 1_000_000
    model = started(Model(), 0, torch.device("cpu"))
    numbers = np.random.default_rng(3)
    asked = [problems.drawn("mixed", numbers, held_out=True) for _ in range(600)]
    rows = [encode(prompt.text) for prompt in asked]
    done = sample(
        model,
        SamplingRequest(
            prompt_tokens=padded(rows, max(map(len, rows))),
            prompt_of=np.arange(600),
            uniforms=numbers.random((600, 24)),
            temperature=1.0,
            poll=lambda done, total: None,
        ),
    )
    said = Counter(problems.verdict(p.text, decode(t)).words for p, t in zip(asked, done.tokens, strict=True))
    right = sum(count for words, count in said.items() if words.startswith("right"))
    assert 0.35 < right / 600 < 0.60
    slips = sum(count for words, count in said.items() if "slip" in words or "not a working" in words)
    assert slips / 600 < 0.03, said


def test_difficulties_are_what_they_are_called() -> None:
    model, numbers = started(Model(), 0, torch.device("cpu")), np.random.default_rng(4)
    rate = {}
    for kind in problems.FAMILIES:
        asked = [problems.drawn(kind, numbers) for _ in range(200)]
        rows = [encode(prompt.text) for prompt in asked]
        done = sample(
            model,
            SamplingRequest(
                prompt_tokens=padded(rows, max(map(len, rows))),
                prompt_of=np.arange(200),
                uniforms=numbers.random((200, 24)),
                temperature=1.0,
                poll=lambda done, total: None,
            ),
        )
        texts = [decode(row) for row in done.tokens]
        rate[kind] = np.mean([bool(problems.verdict(p.text, t).right) for p, t in zip(asked, texts, strict=True)])
    assert rate["easy"] > 0.95
    assert 0.35 < rate["sweet_spot"] < 0.65
    assert 0.1 < rate["hard"] < 0.4
    assert rate["hopeless"] < 0.02


def test_a_checkpoint_is_read_back(tmp_path: Path) -> None:
    model, path = lively(), tmp_path / "mine.safetensors"
    save_model(model, path, {"recipe": "none"})
    other = initialized(Transformer(TINY), 9)
    assert load(other, path)["recipe"] == "none"
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_file_that_is_no_checkpoint_of_this_model_is_refused_in_a_sentence(tmp_path: Path) -> None:
    good, model = tmp_path / "good.safetensors", lively()
    save_model(model, good, {})
    whole = good.read_bytes()
    with torch.no_grad():
        model.norm.weight.fill_(float("nan"))
    bad = tmp_path / "nan.safetensors"
    save_model(model, bad, {})
    cases = {
        "missing": (tmp_path / "none", TINY, "cannot be read"),
        "folder": (tmp_path, TINY, "cannot be read|not a safetensors"),
        "short": (tmp_path / "short", TINY, "not a safetensors"),
        "noise": (tmp_path / "noise", TINY, "not a safetensors"),
        "size": (good, Model(), "layers 2, width 16"),
        "nan": (bad, TINY, "not finite"),
    }
    (tmp_path / "short").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 4)
    for path, size, said in cases.values():
        with pytest.raises(SettingsError, match=said):
            load(Transformer(size), path)


def test_a_device_that_is_not_there_is_refused() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(SettingsError, match="available: cpu"):
            device_named("cuda")


RECIPE = Recipe(size=TINY, steps=6, batch=8, threads=1)


def test_pretraining_goes_on_where_it_was_stopped_bit_for_bit(tmp_path: Path) -> None:
    partial, told = tmp_path / "half", list[int]()
    whole = pretrained(RECIPE, partial, poll=unpolled, progress=lambda done, loss: told.append(done))
    assert told == [1, 2, 3, 4, 5, 6] and not partial.exists()
    with pytest.raises(Cancelled, match="after 3 steps"):
        pretrained(RECIPE, partial, poll=cancelled_at(3), progress=lambda done, loss: None)
    again = pretrained(RECIPE, partial, poll=unpolled, progress=lambda done, loss: None)
    for a, b in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_half_made_checkpoint_of_another_recipe_is_left_alone(tmp_path: Path) -> None:
    partial = tmp_path / "half"
    with pytest.raises(Cancelled):
        pretrained(RECIPE, partial, poll=cancelled_at(1), progress=lambda done, loss: None)
    other = Recipe(size=TINY, steps=7, batch=8)
    with pytest.raises(GrpoError, match="another recipe"):
        pretrained(other, partial, poll=unpolled, progress=lambda done, loss: None)
    assert partial.exists()


def test_what_counts_in_pretraining_is_the_working_and_its_end() -> None:
    tokens, counted = batch(RECIPE, 0)
    for row, real in zip(tokens, counted, strict=True):
        text = decode([*row.tolist(), 0])
        prompt = text[: text.index("=") + 1]
        places = real.nonzero()[:, 0]
        assert int(places[0]) == len(prompt) - 1
        assert int(row[places[-1] + 1]) == 0, "the end sign is learned too"
        assert len(places) == len(text) - len(prompt) + 1


def test_the_command_makes_a_checkpoint_that_a_run_can_start_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["model.width=16", "model.heads=2", "model.context=48"]
    chosen = [word for one in size for word in ("--set", one)]
    out, run = tmp_path / "tiny.safetensors", tmp_path / "run.grpo"
    assert main(["pretrain", "--out", str(out), "--steps", "2", "--batch", "4", "--threads", "1", *chosen]) == 0
    assert main(["pretrain", "--out", str(out), "--steps", "2", *chosen]) == 2
    assert "already exists" in capsys.readouterr().err
    train = ["train", "--language", "--steps", "2", "--out", str(run), *chosen]
    assert main([*train, "--set", f"model.checkpoint={out}", "--set", "task.held_out=4"]) == 0
    assert main(["inspect", str(run)]) == 0
    assert "Right in the batch" in capsys.readouterr().out
