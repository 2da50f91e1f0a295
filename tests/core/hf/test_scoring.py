"""Distributions of completions of a model from a folder: what is equal is computed once, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.hf.learner import FolderLearner
from grpo_core.hf.scoring import Batch, Ways, distributions
from tests.core.hf.tiny import small

WAYS = [Ways(padding=True, sharing=True), Ways(padding=True, sharing=False)]


@pytest.mark.parametrize("ways", WAYS, ids=["a shared prompt", "each row apart"])
def test_equal_completions_are_computed_once_and_give_the_gradient_of_them_all(
    ways: Ways, folders: dict[str, Path]
) -> None:
    model: Any = FolderLearner(small(folders["llama"]), cancelled=lambda: False).policy.model
    numbers = np.random.default_rng(1)
    rows = np.array([0, 1, 0, 0, 4, 4, 6, 4])  # which each completion equals: of four to a prompt two are distinct
    tokens, lengths = numbers.integers(3, 200, (8, 5))[rows], np.array([5, 3, 1, 1, 4, 1, 2, 1])[rows]
    batch = Batch(
        prompt_tokens=np.array([[5, 6, 7, -1], [8, 9, 10, 11]]), tokens=tokens, mask=np.arange(5) < lengths[:, None]
    )
    weight = torch.from_numpy(numbers.normal(size=batch.mask.shape) * batch.mask).float()
    computed, gradients = list[int](), []
    for chunks in ([slice(0, 8)], [slice(row, row + 1) for row in range(8)]):
        model.zero_grad()
        watched = model.register_forward_pre_hook(
            lambda _, args, named: computed.append(len(named["input_ids"])), with_kwargs=True
        )
        for chunk in chunks:
            dist = distributions(model, batch, chunk, 0.7, ways)  # (n, T, V)
            own = torch.from_numpy(tokens[chunk, : dist.shape[1]])[..., None]
            (dist.gather(-1, own)[..., 0] * weight[chunk, : dist.shape[1]]).sum().backward()
        watched.remove()
        gradients.append(torch.cat([w.grad.ravel() for w in model.parameters() if w.grad is not None]))
    together, apart = gradients
    assert computed[: 1 + ways.sharing] == ([2, 4] if ways.sharing else [4]), "two prompts, four distinct completions"
    assert float((together - apart).norm()) < 1e-4 * float(apart.norm()) > 0
