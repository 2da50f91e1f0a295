"""Where an update's tokens lie: each computed once, each found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.lm.layout import Layout, layout
from grpo_core.lm.vocabulary import padded
from tests.core.lm.models import CPU


def batch(prompt_lengths: list[int], lengths: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(prompt tokens, tokens, mask) of these lengths, at random."""
    numbers = np.random.default_rng([len(prompt_lengths), *lengths])
    prompts = padded([numbers.integers(1, 20, n).tolist() for n in prompt_lengths], max(prompt_lengths))
    tokens = padded([numbers.integers(0, 20, n).tolist() for n in lengths], max(lengths))
    return prompts, np.maximum(tokens, 0), tokens >= 0


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    count, group = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    prompts = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    return prompts, draw(st.lists(st.integers(1, 7), min_size=count * group, max_size=count * group))


def made(prompt_lengths: list[int], lengths: list[int]) -> tuple[Layout, np.ndarray, np.ndarray, np.ndarray]:
    prompts, tokens, mask = batch(prompt_lengths, lengths)
    return layout(prompts, tokens, mask, CPU), prompts, tokens, mask


@settings(max_examples=60, deadline=None)
@given(shapes())
def test_nothing_is_computed_twice_and_no_padding_at_all(shape: tuple[list[int], list[int]]) -> None:
    prompt_lengths, lengths = shape
    place, prompts, tokens, mask = made(*shape)
    assert len(place.tokens) == len(place.positions) == sum(prompt_lengths) + sum(lengths) - len(lengths)
    expected, where = list[int](), list[int]()
    for prompt in prompts:
        expected += prompt[prompt >= 0].tolist()
        where += range((prompt >= 0).sum())
    for row, (own, real) in enumerate(zip(tokens, mask, strict=True)):
        before = prompt_lengths[row // (len(lengths) // len(prompt_lengths))]
        expected += own[real][:-1].tolist()
        where += range(before, before + int(real.sum()) - 1)
    assert place.tokens.tolist() == expected
    assert place.positions.tolist() == where


@settings(max_examples=60, deadline=None)
@given(shapes())
def test_each_token_is_predicted_where_the_one_before_it_was_computed(shape: tuple[list[int], list[int]]) -> None:
    prompt_lengths, lengths = shape
    place, prompts, tokens, mask = made(*shape)
    group = len(lengths) // len(prompt_lengths)
    assert len(place.ends) == len(prompt_lengths) + sum(lengths) - len(lengths)
    for row, t in zip(*np.nonzero(mask), strict=True):
        at = int(place.ends[place.context[row, t]])
        prompt = prompts[row // group]
        whole = [*prompt[prompt >= 0].tolist(), *tokens[row].tolist()]
        position = int((prompt >= 0).sum()) + t - 1
        assert int(place.positions[at]) == position
        assert int(place.tokens[at]) == whole[position]
        assert int(place.targets[row, t]) == tokens[row, t]


@settings(max_examples=60, deadline=None)
@given(shapes())
def test_a_group_shares_the_place_of_its_first_token_and_no_other(shape: tuple[list[int], list[int]]) -> None:
    place, _, tokens, mask = made(*shape)
    group = len(tokens) // len(shape[0])
    assert place.context[:, 0].tolist() == [row // group for row in range(len(tokens))]
    later = place.context[:, 1:][mask[:, 1:]].tolist()
    assert later == list(range(len(shape[0]), len(place.ends)))


@settings(max_examples=30, deadline=None)
@given(shapes())
def test_the_cells_are_where_a_table_holds_those_tokens(shape: tuple[list[int], list[int]]) -> None:
    place, prompts, tokens, _ = made(*shape)
    count, group, width, own = place.shape
    assert group is not None
    assert (count, width) == prompts.shape
    assert (count * group, own + 1) == tokens.shape
    right = padded([row[row >= 0].tolist() for row in prompts], width, left=True)
    n = len(place.prompt_cells)
    assert np.array_equal(right.ravel()[place.prompt_cells.numpy()], place.tokens[:n].numpy())
    assert np.array_equal(place.prompt_seen[:, 0, 0].numpy(), right >= 0)
    assert np.array_equal(tokens[:, :-1].ravel()[place.completion_cells.numpy()], place.tokens[n:].numpy())


@pytest.mark.parametrize("fill", [0, 7, 19])
def test_what_stands_in_padding_changes_no_number_of_it(fill: int) -> None:
    prompts, tokens, mask = batch([3, 5], [1, 4, 2, 4])
    one, other = (layout(prompts, np.where(mask, tokens, x), mask, CPU) for x in (0, fill))
    for name in ("tokens", "positions", "ends", "context", "targets", "mask", "completion_cells"):
        assert bool((getattr(one, name) == getattr(other, name)).all()), name
