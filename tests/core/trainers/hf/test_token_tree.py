"""The tree of the tokens of several rows: every row is a path in it, and shared tokens are stored once."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.trainers.hf.token_tree import is_quicker, token_tree


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
