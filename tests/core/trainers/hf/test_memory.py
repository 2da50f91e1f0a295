"""Memory estimated before a model is loaded, compared with its tensors and with the usage of a process."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_core.errors import SettingsError
from grpo_core.trainers.hf.folder import look
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.memory import Need, need, require_space, smaller_sentence
from tests.core.trainers.hf.test_families import like_llama
from tests.core.trainers.hf.tiny import KINDS, saved_from, small

LARGE = like_llama(
    "LlamaConfig",
    hidden_size=384,
    intermediate_size=1024,
    num_hidden_layers=12,
    num_attention_heads=6,
    tie_word_embeddings=True,
    max_position_embeddings=2048,
)
VOCABULARY = 32_000
TABLE: list[dict[str, Any]] = [
    *(
        {"model.adapter_rank": rank, "learner.mu": mu, "objective.beta": beta}
        for rank in (0, 8)
        for mu in (1, 4)
        for beta in (0.0, 0.04)
    ),
    {"model.adapter_rank": 8, "objective.beta": 0.04, "model.precision": "bfloat16"},
    {"model.adapter_rank": 0, "model.checkpointing": True, "objective.beta": 0.0},
    {"model.adapter_rank": 0, "objective.beta": 0.0, "task.prompts": 32, "model.rows_at_once": 4},
    *({"model.adapter_rank": rank, "objective.beta": 0.04, "task.max_tokens": 512} for rank in (0, 8)),
]
"""Changes to the settings with which the peak memory of a process is measured."""


def bytes_of(*tensors: Any) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)


@pytest.mark.parametrize("mu", [1, 2])
@pytest.mark.parametrize("rank", [0, 4])
def test_what_is_kept_and_remembered_takes_the_bytes_that_were_said(
    rank: int, mu: int, folders: dict[str, Path]
) -> None:
    settings = small(folders["llama"], model__adapter_rank=rank, learner__mu=mu)
    learner = FolderLearner(settings)
    next(learner)
    said: Need = need(look(folders["llama"]), settings)
    kept = learner.policy.kept_for(settings)
    moments = [kept.memory] if kept is not None else []
    held = 0 if kept is None else bytes_of(*kept.weights)
    held += sum(bytes_of(x) for memory in moments for each in memory for name, x in each.items() if name != "step")
    assert held == said.kept
    trained = learner.policy.trained_parameters
    assert said.gradients == 4 * trained, "one chunk"
    assert said.kept == (0 if rank == 0 and mu == 1 else 12 * trained)
    assert said.moments == 8 * trained


@pytest.mark.parametrize("kind", KINDS)
def test_the_activations_of_the_backward_pass_are_about_those_that_were_said(
    kind: str, folders: dict[str, Path]
) -> None:
    settings = small(folders[kind], model__adapter_rank=0, task__max_tokens=64)
    model, said = FolderPolicy(settings).model, need(look(folders[kind]), settings)
    parameters = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    rows, length = 8, 64 + 50 // 4
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(input_ids=torch.zeros(rows, length, dtype=torch.int64), use_cache=False, logits_to_keep=1)
    vocabulary = max(max(shape) for shape in look(folders[kind]).shapes.values())
    activations = said.learning - 5 * 4 * rows * 64 * vocabulary
    assert 0.5 < activations / sum(kept.values()) < 1.3


def test_what_does_not_fit_is_refused_with_what_would(folders: dict[str, Path]) -> None:
    files = look(folders["llama"])
    settings = small(folders["llama"], model__adapter_rank=0, learner__mu=4, model__rows_at_once=4)
    with pytest.raises(SettingsError, match="one pass"):
        require_space(files, settings, free=need(files, settings.replace({"learner.mu": 1})).whole)
    with pytest.raises(SettingsError, match="an adapter"):
        require_space(files, settings, free=need(files, settings.replace({"model.adapter_rank": 8})).whole)
    with pytest.raises(SettingsError, match="a smaller model"):
        require_space(files, settings, free=1e6)


def test_what_needs_less_memory_than_one_row_at_a_time_is_named_with_its_estimate(folders: dict[str, Path]) -> None:
    files = look(folders["llama"])
    assert smaller_sentence(files, small(folders["llama"])) == "", "a tiny model needs what the libraries need"
    wide = {name: tuple(100 * length for length in shape) for name, shape in files.shapes.items()}
    files = dataclasses.replace(files, shapes=wide, parameters=sum(math.prod(shape) for shape in wide.values()))
    settings = small(folders["llama"], learner__mu=2, model__adapter_rank=0)
    found = re.fullmatch(r"By estimate, (.*) needs (.*) GB instead of (.*) GB\.", smaller_sentence(files, settings))
    assert found is not None and found[1] == "one pass over each batch (learner.mu=1)"
    one_row = settings.replace({"model.rows_at_once": 1, "learner.mu": 1})
    assert float(found[2]) == pytest.approx(need(files, one_row).whole / 1e9, abs=0.05)
    assert float(found[2]) < 0.8 * float(found[3])


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 31 million parameters, large enough that the libraries do not dominate memory use."""
    folder = tmp_path_factory.mktemp("large") / "model"
    return saved_from(folder, lambda transformers, _: LARGE(transformers, VOCABULARY), lively=1.0)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the most that a process takes is read from /proc")
@pytest.mark.parametrize("changes", TABLE, ids=lambda changes: ", ".join(f"{k} {v}" for k, v in changes.items()))
def test_the_memory_that_is_said_is_that_of_the_process_within_a_tenth(changes: dict[str, Any], large: Path) -> None:
    asked = {"learner.mu": 1, "task.max_tokens": 64, "model.watch_reference": False, **changes}
    command = [sys.executable, "-m", "tests.core.trainers.hf.peak", str(large), json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
    said, taken = json.loads(done.stdout.splitlines()[-1])
    assert said == pytest.approx(taken, rel=0.1)
