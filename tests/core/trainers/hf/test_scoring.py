"""Token distributions of completions from a model in a folder: equal prefixes are computed once, with no other
effect.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.scoring import Batch, Ways, distributions
from tests.core.trainers.hf.tiny import small

PASSES = {
    "a shared prompt": (Ways(padding=True, sharing=True), [(2, 4), (4, 4)]),  # prompts; distinct completions
    "each row apart": (Ways(padding=True, sharing=False), [(4, 8)]),
    "a tree": (Ways(padding=True, sharing=True, tree=sys.maxsize), [(1, 17)]),
}
"""Ways to compute the rows of the test below, and the rows and tokens of the forward passes that each takes."""


@pytest.mark.parametrize("name", PASSES)
def test_equal_completions_are_computed_once_and_give_the_gradient_of_them_all(
    name: str, folders: dict[str, Path]
) -> None:
    ways, expected = PASSES[name]
    model: Any = FolderLearner(small(folders["llama"]), cancelled=lambda: False).policy.model
    numbers = np.random.default_rng(1)
    rows = np.array([0, 1, 0, 0, 4, 4, 6, 4])  # which each completion equals: of four to a prompt two are distinct
    tokens, lengths = numbers.integers(3, 200, (8, 5))[rows], np.array([5, 3, 1, 1, 4, 1, 2, 1])[rows]
    batch = Batch(
        prompt_tokens=np.array([[5, 6, 7, -1], [8, 9, 10, 11]]), tokens=tokens, mask=np.arange(5) < lengths[:, None]
    )
    weight = torch.from_numpy(numbers.normal(size=batch.mask.shape) * batch.mask).float()
    computed, gradients = list[tuple[int, ...]](), []
    for chunks in ([slice(0, 8)], [slice(row, row + 1) for row in range(8)]):
        model.zero_grad()
        watched = model.register_forward_pre_hook(
            lambda _, args, named: computed.append(tuple(named["input_ids"].shape)), with_kwargs=True
        )
        for chunk in chunks:
            dist = distributions(model, batch, chunk, 0.7, ways)
            longest = dist.context.shape[1]
            logp = dist.of(torch.from_numpy(tokens[chunk, :longest]))
            (logp * weight[chunk, :longest]).sum().backward()
        watched.remove()
        gradients.append(torch.cat([w.grad.ravel() for w in model.parameters() if w.grad is not None]))
    together, apart = gradients
    assert computed[: len(expected)] == expected, "two prompts, four distinct completions"
    assert float((together - apart).norm()) < 1e-4 * float(apart.norm()) > 0
