"""Completions are sampled as if each were alone, although shared prefixes are computed only once."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core import progress
from grpo_core.lm.interface import ReadRows, SamplingRequest, Table
from grpo_core.lm.problems import Prompt
from grpo_core.progress import Progress
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.learner import FolderLearner
from tests.core.trainers.hf.tiny import KINDS, small

QUESTIONS = (Prompt("What is 7 plus 5?", "12"), Prompt("Hi", ""), Prompt("What is 7 plus 5?", "12"))


def drawn(policy: FolderPolicy, prompt_of: np.ndarray, uniforms: np.ndarray, greedy: np.ndarray) -> Table:
    return policy.sample(
        SamplingRequest(
            prompt_tokens=policy.encoded(QUESTIONS),
            prompt_of=prompt_of,
            uniforms=uniforms,
            temperature=0.8,
            likeliest=greedy,
            poll=lambda done, total: None,
        )
    )


def rows_computed(policy: FolderPolicy) -> list[int]:
    """Return a list that records the number of rows of each forward pass from now on."""
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
    assert len(rows) > 2
    assert rows[0] == 1, "the chat template begins all questions alike"
    assert set(rows[1:]) == {2}, "the question that is asked twice is one, and so are its likeliest answers"


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


@pytest.mark.parametrize("padding", [True, False], ids=["one batch", "a batch for each length"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_while_it_is_sampled_grows_to_what_is_drawn(
    kind: str, padding: bool, folders: dict[str, Path]
) -> None:
    policy = FolderPolicy(small(folders[kind]))
    policy.ways = dataclasses.replace(policy.ways, padding=padding)
    numbers, rows = np.random.default_rng(5), slice(2, 6)
    readers, told = list[ReadRows](), list[list[list[int]]]()

    def poll(done: int, total: int) -> None:
        tokens, mask, stopped = readers[0](rows)
        told.append([own[kept].tolist() for own, kept in zip(tokens, mask, strict=True)])
        assert all(stops == bool(set(own) & {0, 1}) for own, stops in zip(told[-1], stopped, strict=True))

    tokens, mask, _ = policy.sample(
        SamplingRequest(
            prompt_tokens=policy.encoded(QUESTIONS),
            prompt_of=np.arange(8) % 3,
            uniforms=numbers.random((8, 7)),
            temperature=0.8,
            likeliest=np.zeros(8, dtype=bool),
            poll=poll,
            drawing=readers.append,
        )
    )
    final = [own[kept].tolist() for own, kept in zip(tokens[rows], mask[rows], strict=True)]
    assert len(readers) == 1 and told[0] == [[], [], [], []]
    for before, after in itertools.pairwise([*told, final]):
        assert all(now == later[: len(now)] for now, later in zip(before, after, strict=True))
    assert sum(map(len, told[-1])) >= sum(map(len, final)) - 4, "it is read at every token"


def test_a_pretrained_models_update_tells_the_completions_of_a_group(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    reports = list[Progress]()
    step = next(FolderLearner(small(folders["llama"]), progress=reports.append, group=lambda: 1))
    told = [report.written for report in reports if report.written is not None]
    assert told[0].completions == ((),) * 4 and not any(told[0].ended)
    assert told[-1].completions == tuple(tuple(step.tokens[row][step.mask[row]].tolist()) for row in range(4, 8))
    assert all(told[-1].ended)
