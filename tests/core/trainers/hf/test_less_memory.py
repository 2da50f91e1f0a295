"""Gradient checkpointing and bfloat16: less memory for the same update, up to rounding."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grpo_core.config import language_settings
from grpo_core.errors import SettingsError
from grpo_core.lm.engines import torch_policy
from grpo_core.record import Step
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.layers import checkpointed
from grpo_core.trainers.hf.learner import FolderLearner
from tests.core.trainers.hf.tiny import KINDS, saved, small


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
