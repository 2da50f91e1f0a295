"""Packed scoring against the plain pass, for random shapes and with the shipped model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.config import Model
from grpo_core.lm.checkpoint import started
from grpo_core.lm.model import Transformer, layout, score
from tests.core.lm.models import CPU, lively, plain_logp, prompts, sampled
from tests.core.lm.test_layout import batch, shapes


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
