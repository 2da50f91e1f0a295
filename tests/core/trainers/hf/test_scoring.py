"""Token distributions of completions from a model in a folder: equal prefixes are computed once, in a tree of the
tokens of several rows, with no other effect.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grpo_core.trainers.hf.adapter import spare_launches
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.scoring import Batch, Ways, distributions
from grpo_core.trainers.hf.token_tree import is_quicker, is_quicker_on_gpu, is_worth_repeating, token_tree
from tests.core.trainers.hf.tiny import KINDS, small

PASSES = {
    "a shared prompt": (Ways(padding=True, sharing=True), [(2, 4), (4, 4)]),  # prompts; distinct completions
    "each row apart": (Ways(padding=True, sharing=False), [(4, 8)]),
    "a tree": (Ways(padding=True, sharing=True, tree=sys.maxsize), [(1, 17)]),
    "a tree on a GPU": (Ways(padding=True, sharing=True, tree=sys.maxsize, one_pass=True), [(1, 17)]),
    "rows on a GPU": (Ways(padding=True, sharing=True, one_pass=True), [(4, 8)]),
}
"""Ways to compute the rows of the test below, and the rows and tokens of the forward passes that each takes."""


@pytest.mark.parametrize("name", PASSES)
def test_equal_completions_are_computed_once_and_give_the_gradient_of_them_all(
    name: str, folders: dict[str, Path]
) -> None:
    ways, expected = PASSES[name]
    model: Any = FolderLearner(small(folders["llama"])).policy.model
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


def test_long_prompts_and_large_trees_are_not_repeated_on_a_gpu() -> None:
    assert is_worth_repeating(2, 16, 50, 127) and not is_worth_repeating(4, 32, 50, 11)
    tree = token_tree([np.arange(50)] * 32, np.random.default_rng(0).integers(50, 9999, (32, 128)))
    assert is_quicker_on_gpu(tree, 64) and not is_quicker_on_gpu(tree, 576)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_in_fewer_operations_gives_the_same(kind: str, precision: str, folders: dict[str, Path]) -> None:
    settings = small(folders[kind], model__adapter_rank=4, model__precision=precision)
    policy = FolderLearner(settings).policy
    with torch.no_grad():
        for name, weight in policy.model.named_parameters():
            if "lora_B" in name:
                weight.normal_(0, 0.05, generator=torch.Generator().manual_seed(1))
    tokens, results, launched = torch.arange(3, 15).view(2, 6), list[Any](), list[int]()
    for _ in range(2):
        policy.model.zero_grad()
        with policy.computing(settings), Counted() as counted:
            logits = policy.model(tokens).logits.float()
            with policy.model.disable_adapter(), torch.no_grad():
                off = policy.model(tokens).logits
            logits.log_softmax(-1)[..., 7].sum().backward()
        gradient = torch.cat([w.grad.ravel() for w in policy.model.parameters() if w.grad is not None])
        results.append((logits.detach(), gradient, off))
        launched.append(counted.operations)
        spare_launches(policy.model)
    (logits, gradient, off), (short, short_gradient, short_off) = results
    near = 1e-5 if precision == "float32" else 2e-2
    assert torch.equal(off, short_off) and float((off - logits).abs().max()) > 0
    assert float((logits - short).norm()) < near * float(logits.norm())
    assert float((gradient - short_gradient).norm()) < 2 * near * float(gradient.norm())
    assert launched[1] < launched[0]


class Counted(TorchDispatchMode):
    """Counts the operations that start a kernel on a GPU."""

    operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += not func.is_view and func.name() != "aten::_unsafe_view"
        return func(*args, **(kwargs or {}))


def drawn_rows(seed: int, alphabet: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return random prompts and completions of six rows, two per prompt."""
    numbers = np.random.default_rng(seed)
    prompts = [numbers.integers(0, alphabet, numbers.integers(1, 6)) for _ in range(3)]
    return [prompts[row // 2] for row in range(6)], [
        numbers.integers(0, alphabet, numbers.integers(1, 8)) for _ in range(6)
    ]


@pytest.mark.parametrize("alphabet", [1, 2, 50], ids=["all alike", "much shared", "little shared"])
@pytest.mark.parametrize("seed", range(5))
def test_every_token_is_predicted_after_exactly_those_before_it(seed: int, alphabet: int) -> None:
    prompts, completions = drawn_rows(seed, alphabet)
    tree = token_tree(prompts, completions)
    assert len({*zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)}) == len(tree.tokens), "each once"
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        sequence = np.concatenate([prompt, completion])
        for t in range(len(completion)):
            seen = np.flatnonzero(tree.visible[tree.contexts[tree.context[row, t]]])
            seen = seen[np.argsort(tree.depths[seen])]
            assert np.array_equal(tree.tokens[seen], sequence[: len(prompt) + t])
            assert np.array_equal(tree.depths[seen], np.arange(len(seen)))


def test_a_tree_is_used_where_rows_share_and_not_where_attention_over_all_of_them_takes_longer() -> None:
    prompt, numbers = np.arange(20), np.random.default_rng(0)
    alike = [numbers.integers(0, 2, 8) for _ in range(16)]
    unlike = [numbers.integers(0, 10_000, 800) for _ in range(16)]
    lengths = np.array([len(prompt)])
    assert is_quicker(token_tree([prompt] * 16, alike), lengths, 8, width=64)
    assert not is_quicker(token_tree([prompt] * 16, unlike), lengths, 800, width=64)
