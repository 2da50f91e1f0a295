"""Completions are drawn as if each were alone, though equal beginnings are computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.hf.policy import FolderPolicy
from grpo_core.lm.interface import Table
from grpo_core.lm.problems import Prompt
from tests.core.hf.tiny import KINDS, small

QUESTIONS = (Prompt("What is 7 plus 5?", "12"), Prompt("Hi", ""), Prompt("What is 7 plus 5?", "12"))


def drawn(policy: FolderPolicy, prompt_of: np.ndarray, uniforms: np.ndarray, greedy: np.ndarray) -> Table:
    return policy.sample(
        policy.encoded(QUESTIONS), prompt_of, uniforms, temperature=0.8, greedy=greedy, poll=lambda done, total: None
    )


def rows_computed(policy: FolderPolicy) -> list[int]:
    """Rows of each forward pass from now on."""
    rows = list[int]()

    def note(model: Any, arguments: Any, named: dict[str, Any]) -> None:
        rows.append(len(named["input_ids"]))

    policy.model.register_forward_pre_hook(note, with_kwargs=True)
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_completion_is_the_one_that_is_drawn_alone(kind: str, folders: dict[str, Path]) -> None:
    policy, count = FolderPolicy(small(folders[kind])), 12
    numbers = np.random.default_rng(3)
    prompt_of, uniforms = np.arange(count) % 3, np.repeat(numbers.random((count // 2, 7)), 2, axis=0)
    greedy = np.arange(count) % 4 == 0
    together = drawn(policy, prompt_of, uniforms, greedy)
    for row in range(count):
        alone = drawn(policy, prompt_of[row : row + 1], uniforms[row : row + 1], greedy[row : row + 1])
        for table, own in zip(together[:2], alone[:2], strict=True):
            np.testing.assert_array_equal(table[row], own[0])
        np.testing.assert_allclose(together[2][row], alone[2][0], atol=2e-5)
    assert len({tuple(row) for row in together[0].tolist()}) > 4, "they part"


def test_equal_beginnings_are_computed_once(folders: dict[str, Path]) -> None:
    policy = FolderPolicy(small(folders["llama"]))
    rows = rows_computed(policy)
    drawn(policy, np.array([0, 0, 2, 2, 1]), np.zeros((5, 4)), np.array([True] * 5))
    assert len(rows) > 1
    assert set(rows) == {2}, "the question that stands twice is one, and so are its likeliest answers"


def test_what_parts_is_computed_apart_from_then_on(folders: dict[str, Path]) -> None:
    policy = FolderPolicy(small(folders["llama"]))
    rows = rows_computed(policy)
    uniforms = np.tile(np.random.default_rng(0).random((1, 5)), (4, 1))
    uniforms[2:, 2] = [0.01, 0.99]
    tokens, mask, _ = drawn(policy, np.zeros(4, dtype=int), uniforms, np.zeros(4, bool))
    assert mask[:, :4].all(), "nothing ends before"
    beginnings = [len({tuple(row[:t]) for row in tokens.tolist()}) for t in range(5)]
    assert rows == beginnings
    assert beginnings[0] == 1 < beginnings[-1]
