"""The layout of an update's tokens: each is computed once and found again, also for equal completions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.lm.model import Layout, layout
from grpo_core.lm.packing import key_columns
from grpo_core.lm.vocabulary import padded
from tests.core.lm.models import CPU


def batch(prompt_lengths: list[int], lengths: list[int], kinds: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (prompt tokens, tokens, mask) with these lengths, random from ``kinds`` tokens. With few kinds, many
    are equal.
    """
    numbers = np.random.default_rng([len(prompt_lengths), *lengths])
    prompts = padded([numbers.integers(1, 20, n).tolist() for n in prompt_lengths], max(prompt_lengths))
    tokens = padded([numbers.integers(0, kinds, n).tolist() for n in lengths], max(lengths))
    return prompts, np.maximum(tokens, 0), tokens >= 0


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    count, group = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    prompts = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    return prompts, draw(st.lists(st.integers(1, 7), min_size=count * group, max_size=count * group))


def made(
    prompt_lengths: list[int], lengths: list[int], kinds: int
) -> tuple[Layout, np.ndarray, np.ndarray, np.ndarray]:
    prompts, tokens, mask = batch(prompt_lengths, lengths, kinds)
    return layout(prompts, tokens, mask, CPU), prompts, tokens, mask


def distinct(prompts: np.ndarray, tokens: np.ndarray, mask: np.ndarray) -> list[tuple[int, tuple[int, ...]]]:
    """Return (prompt, tokens) of every completion that differs from all previous ones."""
    group = len(tokens) // len(prompts)
    return list(dict.fromkeys((row // group, tuple(own[mask[row]].tolist())) for row, own in enumerate(tokens)))


KINDS = st.sampled_from([1, 2, 20])


@settings(max_examples=60, deadline=None)
@given(shapes(), KINDS)
def test_nothing_is_computed_twice_and_no_padding_at_all(shape: tuple[list[int], list[int]], kinds: int) -> None:
    prompt_lengths, _ = shape
    place, prompts, tokens, mask = made(*shape, kinds)
    expected, where = list[int](), list[int]()
    for prompt in prompts:
        expected += prompt[prompt >= 0].tolist()
        where += range((prompt >= 0).sum())
    for asked, own in distinct(prompts, tokens, mask):
        before = prompt_lengths[asked]
        expected += own[:-1]
        where += range(before, before + len(own) - 1)
    assert place.tokens.tolist() == expected
    assert place.positions.tolist() == where


@settings(max_examples=60, deadline=None)
@given(shapes(), KINDS)
def test_each_token_is_predicted_where_the_one_before_it_was_computed(
    shape: tuple[list[int], list[int]], kinds: int
) -> None:
    prompt_lengths, lengths = shape
    place, prompts, tokens, mask = made(*shape, kinds)
    group = len(lengths) // len(prompt_lengths)
    for row, t in zip(*np.nonzero(mask), strict=True):
        at = int(place.ends[place.context[row, t]])
        prompt = prompts[row // group]
        whole = [*prompt[prompt >= 0].tolist(), *tokens[row].tolist()]
        position = int((prompt >= 0).sum()) + t - 1
        assert int(place.positions[at]) == position
        assert int(place.tokens[at]) == whole[position]
        assert int(place.targets[row, t]) == tokens[row, t]


@settings(max_examples=60, deadline=None)
@given(shapes(), KINDS)
def test_tokens_share_a_place_where_they_come_first_and_where_their_completions_are_equal(
    shape: tuple[list[int], list[int]], kinds: int
) -> None:
    place, prompts, tokens, mask = made(*shape, kinds)
    group = len(tokens) // len(prompts)
    assert place.context[:, 0].tolist() == [row // group for row in range(len(tokens))]
    places: dict[object, int] = {}
    for row, t in zip(*np.nonzero(mask[:, 1:]), strict=True):
        places.setdefault((row // group, tuple(tokens[row, mask[row]]), t), len(prompts) + len(places))
        assert int(place.context[row, t + 1]) == places[row // group, tuple(tokens[row, mask[row]]), t]
    assert len(place.ends) == len(prompts) + len(places)


@settings(max_examples=30, deadline=None)
@given(shapes(), KINDS)
def test_the_cells_are_where_a_table_holds_those_tokens(shape: tuple[list[int], list[int]], kinds: int) -> None:
    place, prompts, tokens, mask = made(*shape, kinds)
    count, width, own = place.shape
    assert (count, width, own + 1) == (*prompts.shape, tokens.shape[1])
    right = padded([row[row >= 0].tolist() for row in prompts], width, left=True)
    n = len(place.prompt_cells)
    assert np.array_equal(right.ravel()[place.prompt_cells.numpy()], place.tokens[:n].numpy())
    assert np.array_equal(place.within[:, 0, -1].numpy() == 0, right >= 0)
    assert np.array_equal(place.tokens[place.prompt_table].numpy()[right.ravel() >= 0], right[right >= 0])
    asked, owns = zip(*distinct(prompts, tokens, mask), strict=True)
    assert place.prompt_of.tolist() == list(asked)
    of_prompt = np.repeat(right[list(asked), None] >= 0, own, axis=1)
    assert np.array_equal(place.after[:, 0, :, :width].numpy() == 0, of_prompt)
    computed = padded([list(row[:-1]) for row in owns], own)
    assert np.array_equal(computed.ravel()[place.completion_cells.numpy()], place.tokens[n:].numpy())
    seen = np.concatenate([right[list(asked)], computed], axis=1)  # what a completion attends to: its prompt, itself
    keys = place.tokens[place.key_table].view(len(owns), -1).numpy()
    assert keys.shape[1] == key_columns(width + own)
    assert np.array_equal(keys[:, : width + own][seen >= 0], seen[seen >= 0])
    assert np.array_equal(keys.ravel()[place.key_cells.numpy()], place.tokens[n:].numpy())


@pytest.mark.parametrize(("count", "columns"), [(1, 16), (16, 16), (17, 32), (33, 48)])
def test_keys_come_in_whole_blocks(count: int, columns: int) -> None:
    assert key_columns(count) == columns


@pytest.mark.parametrize("fill", [0, 7, 19])
def test_what_stands_in_padding_changes_no_number_of_it(fill: int) -> None:
    prompts, tokens, mask = batch([3, 5], [1, 4, 2, 4])
    one, other = (layout(prompts, np.where(mask, tokens, x), mask, CPU) for x in (0, fill))
    for name, value in vars(one).items():
        assert np.array_equal(value, getattr(other, name)), name
