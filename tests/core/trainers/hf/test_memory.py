"""Memory: estimated before a model is loaded, saved by checkpointing and bfloat16, and with fewer rows at a time if it
is short.
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import math
import re
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grpo_core.config import language_settings
from grpo_core.errors import GrpoError, SettingsError, is_out_of_memory
from grpo_core.lm.engines import torch_policy
from grpo_core.record import Step
from grpo_core.trainers.hf import folder_policy as module
from grpo_core.trainers.hf.folder import look
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.layers import checkpointed
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.memory import Need, need, require_space, smaller_sentence
from tests.core.lm.starving import CPU, CUBLAS, PLACES, Starving, is_within
from tests.core.trainers.hf.test_families import like_llama
from tests.core.trainers.hf.tiny import KINDS, saved, saved_from, small

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


class Launched(TorchDispatchMode):
    """Counts the operations of ``train``."""

    def __init__(self) -> None:
        super().__init__()
        self.training = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.training += is_within("train")
        return func(*args, **(kwargs or {}))


def run(folder: Path, **changes: Any) -> FolderLearner:
    return FolderLearner(small(folder, **changes))


def starve(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> tuple[list[int], list[Any]]:
    """Make ``name`` fail if it is called with more than ``most`` rows.

    Returns the numbers of rows requested, and weak references to the tensors held by the failing frames.
    """
    real, asked, held = getattr(module, name), list[int](), list[Any]()

    def short(*given: Any, **named: Any) -> Any:
        rows = named["at_once"] if "at_once" in named else given[2].stop - given[2].start
        asked.append(rows)
        assert all(tensor() is None for tensor in held), "what the failing frames held is gone before the next try"
        if rows > most:
            large = torch.zeros(1000)
            held.append(weakref.ref(large))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(*given, **named)

    monkeypatch.setattr(module, name, short)
    return asked, held


@pytest.mark.parametrize("changes", [{}, {"model__adapter_rank": 0}], ids=["an adapter", "every weight"])
def test_an_update_is_learned_from_fewer_rows_at_once(
    changes: dict[str, Any], folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [*itertools.islice(run(folders["llama"], model__rows_at_once=2, **changes), 2)]
    going = run(folders["llama"], model__rows_at_once=8, **changes)
    asked, held = starve(monkeypatch, "distributions", 3)
    gc.disable()
    try:
        steps = [next(going), next(going)]
    finally:
        gc.enable()
    assert [rows for rows in asked if rows > 2] == [8, 4] and len(held) == 2, "once, for the whole run"
    for step, wanted in zip(steps, expected, strict=True):
        assert np.array_equal(step.tokens, wanted.tokens)
        assert np.array_equal(step.logp, wanted.logp), "that of a run with so many rows at once"


def test_an_update_is_sampled_with_fewer_rows_at_once(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, going = next(run(folders["llama"])), run(folders["llama"])
    asked, _ = starve(monkeypatch, "sample", 5)
    step = next(going)
    first, others = asked[0], asked[1:]
    assert others[0] == first // 2 and max(others[1:]) <= 5
    assert np.array_equal(step.tokens, expected.tokens)
    np.testing.assert_allclose(step.old_logp, expected.old_logp, atol=1e-5)


@pytest.mark.quick_cases("4-copy", "4-reference", "0-backward", "0-after")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rank", [4, 0])
def test_memory_that_runs_out_at_any_place_of_an_update_takes_nothing_with_it(
    rank: int, place: str, folders: dict[str, Path]
) -> None:
    if place == "copy" and not rank:
        pytest.skip("every weight, trained in one pass, is not copied")
    changes: dict[str, Any] = {"model__adapter_rank": rank, "objective__beta": 0.04}
    expected, going = [*itertools.islice(run(folders["llama"], **changes), 2)], run(folders["llama"], **changes)
    next(going)
    with Starving(place, CUBLAS, times=1) as hungry:
        step = next(going)
    assert hungry.left == 0, "repeated with fewer rows at once"
    assert np.array_equal(step.tokens, expected[1].tokens)
    np.testing.assert_allclose(step.logp, expected[1].logp, atol=1e-3)
    with Starving(place), pytest.raises(GrpoError, match=r"not enough memory for 8 .* is at update 2") as said:
        next(going)
    if place == "after" and not rank:
        assert "ended after its step" in str(said.value), "there is no copy of the weights before the step"
    else:
        assert next(going).step == 3


def test_where_a_gpu_has_memory_to_spare_rows_are_learned_from_together(folders: dict[str, Path]) -> None:
    changes: dict[str, Any] = {"model__rows_at_once": 2, "model__adapter_rank": 4}
    few, together = run(folders["llama"], **changes), run(folders["llama"], **changes)
    together.policy.spare = 1e9
    with Launched() as in_chunks:
        expected = next(few)
    with Launched() as at_once:
        found = next(together)
    assert (few.policy.at_once, together.policy.at_once) == (2, 8)
    assert np.array_equal(found.tokens, expected.tokens)
    np.testing.assert_allclose(found.logp, expected.logp, atol=1e-4)
    assert at_once.training < 0.4 * in_chunks.training, "operations, each of which a GPU launches"
    with Starving("backward", times=1):
        assert next(together).step == 2
    assert together.policy.at_once == 4, "as if the settings had named as many"


def test_scores_after_the_step_are_repeated_without_the_step(folders: dict[str, Path]) -> None:
    changes: dict[str, Any] = {"model__adapter_rank": 0, "optimizer__learning_rate": 0.01}
    expected, going = next(run(folders["llama"], **changes)), run(folders["llama"], **changes)
    with Starving("after", CPU, times=2) as hungry:
        step = next(going)
    assert hungry.left == 0
    np.testing.assert_allclose(step.logp, expected.logp, atol=1e-3)


def test_memory_that_the_cpu_refuses_is_recognized() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(10**15)
    assert is_out_of_memory(refused.value) and not is_out_of_memory(RuntimeError("shapes do not match"))


def test_where_one_row_is_too_many_it_is_said_and_the_run_goes_on_later(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, going = next(run(folders["llama"])), run(folders["llama"])
    with monkeypatch.context() as starved:
        asked, _ = starve(starved, "distributions", 0)
        with pytest.raises(GrpoError, match=r"not enough memory for 8 completions .* is at update 0") as refused:
            next(going)
    assert asked == [8, 4, 2, 1]
    assert refused.value.__context__ is None and refused.value.__cause__ is None
    assert np.array_equal(next(going).tokens, expected.tokens)


def update(folder: Path, **changes: Any) -> Step:
    return next(FolderLearner(small(folder, **changes)))


@contextmanager
def bytes_kept() -> Iterator[list[int]]:
    """Collect the size of every tensor kept for the backward pass."""
    sizes: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield sizes


@pytest.mark.quick_cases("llama-4", "gpt2-0")
@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_an_update_with_checkpointing_is_that_without(kind: str, rank: int, folders: dict[str, Path]) -> None:
    plain = update(folders[kind], model__adapter_rank=rank, learner__mu=2)
    found = update(folders[kind], model__adapter_rank=rank, learner__mu=2, model__checkpointing=True)
    assert np.array_equal(found.tokens, plain.tokens)
    assert np.abs(found.logp - plain.logp).max() < 1e-4
    assert found.measurements["grad_norm"] == pytest.approx(plain.measurements["grad_norm"], rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_with_checkpointing_the_layers_keep_nothing_for_the_backward_pass(kind: str, folders: dict[str, Path]) -> None:
    model = FolderPolicy(small(folders[kind], model__checkpointing=True)).model
    tokens, kept = torch.arange(40)[None].repeat(4, 1), []
    for wanted in (False, True):
        with bytes_kept() as sizes, checkpointed(model, wanted):
            model(input_ids=tokens, use_cache=False).logits.sum().backward()
        kept.append(sum(sizes))
    assert kept[1] < 0.7 * kept[0]
    assert not any(module.training for module in model.modules()), "dropout stays off"


def test_checkpointing_is_switched_on_and_off_while_a_run_goes_on(folders: dict[str, Path]) -> None:
    one, other = (FolderLearner(small(folders["llama"])) for _ in range(2))
    next(one), next(other)
    other.settings = other.settings.replace({"model.checkpointing": True})
    assert np.abs(next(one).logp - next(other).logp).max() < 1e-4


@pytest.mark.quick_cases("llama-0", "gpt2-4")
@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_an_update_in_bfloat16_is_that_in_float32_as_far_as_three_digits_go(
    kind: str, rank: int, tmp_path: Path
) -> None:
    folder = saved(tmp_path / kind, kind, lively=2.0)
    changes: dict[str, Any] = {"model__adapter_rank": rank, "model__precision": "bfloat16"}
    rough = FolderPolicy(small(folder, **changes))
    exact = FolderPolicy(small(folder, model__adapter_rank=rank))
    step = update(folder, **changes)
    assert step.prompt_tokens is not None
    batch = exact.batch(step.prompt_tokens, step.tokens, step.mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = rough.score(batch, 1.0, lambda done, total: None).logp
    expected = exact.score(batch, 1.0, lambda done, total: None).logp
    assert 0 < float((found - expected).abs().max()) < 0.05
    assert np.abs(step.old_logp - expected.numpy()).max() < 0.05


@pytest.mark.parametrize("rank", [0, 4])
def test_what_is_trained_in_bfloat16_keeps_steps_that_are_too_small_for_bfloat16(
    rank: int, folders: dict[str, Path]
) -> None:
    settings = small(
        folders["llama"], model__adapter_rank=rank, model__precision="bfloat16", optimizer__learning_rate=1e-6
    )
    going = FolderLearner(settings)
    before = [weight.detach().clone() for weight in going.policy.model.parameters() if weight.requires_grad]
    next(going)
    after = [weight.detach() for weight in going.policy.model.parameters() if weight.requires_grad]
    assert all(weight.dtype == torch.float32 for weight in after)
    assert max(float((a - b).abs().max()) for a, b in zip(after, before, strict=True)) > 0


class Casts(TorchDispatchMode):
    """Counts conversions of matrices with the sizes of ``weights`` to bfloat16."""

    def __init__(self, weights: list[torch.Tensor]) -> None:
        super().__init__()
        self._addresses = {weight.data_ptr() for weight in weights}
        self.counted = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ == "_to_copy" and args[0].data_ptr() in self._addresses:
            self.counted += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("rank", [0, 4])
def test_in_bfloat16_weights_are_converted_once_for_each_state_that_they_have(
    rank: int, folders: dict[str, Path]
) -> None:
    settings = small(
        folders["llama"],
        model__adapter_rank=rank,
        model__precision="bfloat16",
        model__watch_reference=False,
        learner__mu=2,
        optimizer__learning_rate=0.01,
    )
    going = FolderLearner(settings)
    next(going)
    weights = [weight for weight in going.policy.model.parameters() if weight.requires_grad and weight.ndim > 1]
    with Casts(weights) as casts:
        step = next(going)
    states = 1 + settings.learner.mu
    assert casts.counted == states * len(weights)
    assert len(step.logp) == states
    for before, after in itertools.pairwise(step.logp):
        assert np.abs(after - before).max() > 0.1, "scored under the weights after the step, not those before it"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_character_model_in_bfloat16_is_refused_with_what_was_measured(device: str) -> None:
    with pytest.raises(SettingsError, match="3 to 10 times slower in bfloat16"):
        torch_policy(language_settings().replace({"model.device": device, "model.precision": "bfloat16"}))
