"""The plain forward pass, the reference for the fast ones."""

from __future__ import annotations

import math

import pytest
import torch

from grpo_core.config import Model
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.numpy_engine.weights import parameters
from grpo_core.lm.vocabulary import VOCABULARY
from tests.core.lm.models import TINY, lively

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
