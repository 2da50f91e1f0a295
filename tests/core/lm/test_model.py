"""The model: its plain forward pass, the layout of an update's tokens, and scoring, which agrees with that pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.config import Model
from grpo_core.lm.checkpoint import started
from grpo_core.lm.model import Layout, Transformer, initialized, layout, score
from grpo_core.lm.numpy_engine.weights import parameters
from grpo_core.lm.packing import key_columns
from grpo_core.lm.vocabulary import VOCABULARY, padded
from tests.core.lm.models import CPU, TINY, lively, plain_logp, prompts, sampled

TOKENS = torch.tensor([[3, 11, 5, 13, 4, 14, 8, 0]])


@pytest.mark.parametrize("place", range(8))
def test_a_token_reaches_only_what_comes_after_it(place: int) -> None:
    model, other = lively(), TOKENS.clone()
    other[0, place] = 17
    with torch.no_grad():
        change = (model(TOKENS) - model(other)).abs().amax(dim=-1)[0]
    assert (change[:place] == 0).all()
    assert (change[place:] > 0).all()


def test_the_order_of_what_came_before_counts() -> None:
    model = lively()
    with torch.no_grad():
        one, other = (model(torch.tensor([tokens]))[0, -1] for tokens in ([3, 11, 5, 14], [5, 11, 3, 14]))
    assert (one - other).abs().max() > 1e-3


def test_rows_know_nothing_of_each_other() -> None:
    model = lively()
    two = torch.cat([TOKENS, TOKENS.flip(1)])
    with torch.no_grad():
        assert torch.allclose(model(two)[0], model(TOKENS)[0], atol=1e-6)


def test_a_seed_fixes_the_weights_and_another_seed_gives_others() -> None:
    first, again, other = (initialized(Transformer(TINY), seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embed.weight"], other["embed.weight"])


def test_an_untrained_model_knows_nothing_yet() -> None:
    with torch.no_grad():
        dist = initialized(Transformer(Model()), 0)(TOKENS).softmax(dim=-1)
    assert float(dist.max()) < 4 / len(VOCABULARY)


def test_what_adds_to_the_stream_starts_smaller_by_the_root_of_twice_the_layers() -> None:
    size = Model(layers=8, width=64, heads=4)
    model = initialized(Transformer(size), 0)
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            wanted = 0.02 / math.sqrt(16) if "out." in name or "down." in name else 0.02
            assert float(weight.detach().std()) == pytest.approx(wanted, rel=0.1), name


@pytest.mark.parametrize("size", [TINY, Model(), Model(layers=1, width=8, heads=8, context=30), Model(layers=5)])
def test_the_size_is_told_without_building_the_model(size: Model) -> None:
    assert parameters(size) == sum(weight.numel() for weight in Transformer(size).parameters())


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


@settings(max_examples=40, deadline=None)
@given(shape=shapes(), temperature=st.sampled_from([0.3, 1.0, 2.5]))
def test_any_batch_is_scored_as_the_plain_pass_scores_it(
    shape: tuple[list[int], list[int]], temperature: float
) -> None:
    asked, tokens, mask = batch(*shape)
    model = MODEL
    with torch.no_grad():
        found = score(model, layout(asked, tokens, mask, CPU), temperature)
        expected = plain_logp(model, asked, tokens, mask, temperature)
    assert torch.allclose(found.logp, expected, atol=1e-5)
    assert (found.logp[~torch.from_numpy(mask)] == 0).all()
    assert torch.allclose(found.dist_logp.exp().sum(dim=-1), torch.ones(()), atol=1e-5)


MODEL = lively()


@pytest.mark.parametrize(("count", "group", "temperature"), [(1, 1, 1.0), (1, 5, 0.7), (3, 1, 1.3), (8, 8, 0.6)])
@pytest.mark.parametrize("model", [MODEL, started(Model(), 0, CPU)], ids=["lively", "shipped"])
def test_sampling_and_scoring_give_the_log_probabilities_of_a_full_forward_pass(
    model: Transformer, count: int, group: int, temperature: float
) -> None:
    asked = prompts(count)
    done = sampled(model, asked, group, temperature=temperature)
    with torch.no_grad():
        found = score(model, layout(asked, done.tokens, done.mask, CPU), temperature).logp.numpy()
        expected = plain_logp(model, asked, done.tokens, done.mask, temperature).numpy()
    assert np.abs(found - expected).max() < 1e-5
    assert np.abs(done.logp - expected).max() < 1e-5


@pytest.mark.parametrize("group", [2, 8])
def test_equal_completions_are_scored_once_and_alike(group: int) -> None:
    asked, tokens, mask = batch([3, 6, 4], [1, 7, 3, 5, 2, 7])
    again = np.arange(3).repeat(group) * 2 + np.tile([1, 0, 0, 1, 1, 1, 0, 1][:group], 3)
    place = layout(asked, tokens[again], mask[again], CPU)
    assert len(place.tokens) == (asked >= 0).sum() + np.array([0, 6, 2, 4, 1, 6]).sum(), "each completion once"
    with torch.no_grad():
        found, once = score(MODEL, place, 0.8).logp, score(MODEL, layout(asked, tokens, mask, CPU), 0.8).logp
    assert torch.equal(found, found[first_of(again)]), "to the last bit"
    assert torch.allclose(found, once[torch.from_numpy(again)], atol=1e-6)


def first_of(rows: np.ndarray) -> torch.Tensor:
    """Return, for each of ``rows`` (B,), the first position of its value."""
    return torch.tensor([rows.tolist().index(row) for row in rows.tolist()])


@pytest.mark.parametrize("rows", [range(6), [0, 0, 3, 3, 5, 4], [1, 1, 2, 2, 4, 4]], ids=["distinct", "some", "equal"])
def test_gradients_in_float64_are_those_of_the_plain_pass(rows: Sequence[int]) -> None:
    model = lively().double()
    asked, tokens, mask = batch([3, 6, 4], [1, 7, 3, 5, 2, 7])
    tokens, mask = tokens[list(rows)], mask[list(rows)]
    weight = torch.from_numpy(np.random.default_rng(0).normal(size=mask.shape) * mask)
    place = layout(asked, tokens, mask, CPU)
    found = []
    # the head gives float32 logits, which is what remains of a difference
    for logp in (score(model, place, 0.8).logp, plain_logp(model, asked, tokens, mask, 0.8)):
        model.zero_grad()
        (weight * logp).sum().backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    packed, plain = found
    assert packed.keys() == plain.keys() == dict(model.named_parameters()).keys()
    for name, gradient in plain.items():
        assert torch.allclose(packed[name], gradient, rtol=1e-4, atol=1e-5 * float(gradient.abs().max() + 1)), name
