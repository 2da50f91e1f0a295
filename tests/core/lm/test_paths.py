"""The plain forward pass, packed scoring and cached sampling agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from grpo_core.lm.interface import SamplingRequest
from grpo_core.lm.model import layout, score
from grpo_core.lm.numpy_engine.weights import parameters
from grpo_core.lm.sampler import sample
from grpo_core.lm.vocabulary import STOP
from tests.core.lm.models import CPU, TINY, lively, plain_logp, prompts, sampled

CASES = [(1, 1, 1.0), (1, 5, 0.7), (3, 1, 1.3), (4, 6, 1.0)]


@pytest.mark.parametrize(("count", "group", "temperature"), CASES)
def test_sampling_and_scoring_give_the_log_probabilities_of_a_full_forward_pass(
    count: int, group: int, temperature: float
) -> None:
    model, asked = lively(), prompts(count)
    done = sampled(model, asked, group, temperature=temperature)
    found = score(model, layout(asked, done.tokens, done.mask, CPU), temperature).logp.detach().numpy()
    expected = plain_logp(model, asked, done.tokens, done.mask, temperature).detach().numpy()
    assert np.abs(found - expected).max() < 1e-5
    assert np.abs(done.logp - expected).max() < 1e-5


def test_sharing_a_prompt_within_its_group_changes_nothing() -> None:
    model, asked = lively(), prompts(3)
    done = sampled(model, asked, 4)
    shared = score(model, layout(asked, done.tokens, done.mask, CPU), 1.0).logp.detach()
    alone = score(model, layout(asked.repeat(4, axis=0), done.tokens, done.mask, CPU), 1.0).logp.detach()
    assert torch.allclose(shared, alone, atol=1e-5)


def test_its_gradient_is_that_of_the_plain_pass() -> None:
    model, asked = lively().double(), prompts(3)
    done = sampled(lively(), asked, 4)
    weight = torch.from_numpy(np.random.default_rng(3).normal(size=done.mask.shape) * done.mask)
    gradients = []
    place = layout(asked, done.tokens, done.mask, CPU)
    for logp in (score(model, place, 0.9).logp, plain_logp(model, asked, done.tokens, done.mask, 0.9)):
        model.zero_grad()
        (weight * logp).sum().backward()
        gradients.append(torch.cat([p.grad.ravel() for p in model.parameters() if p.grad is not None]))
    packed, plain = gradients
    assert torch.allclose(packed, plain, atol=1e-4 * float(plain.abs().max()))


def test_what_stands_in_padding_reaches_nothing() -> None:
    model, asked = lively(), prompts(3)
    done = sampled(model, asked, 2)
    clean = score(model, layout(asked, done.tokens, done.mask, CPU), 1.0).logp.detach()
    soiled = np.where(done.mask, done.tokens, 7)
    assert torch.equal(clean, score(model, layout(asked, soiled, done.mask, CPU), 1.0).logp.detach())


def test_completions_of_one_token_and_of_the_longest_length_are_scored() -> None:
    model, asked = lively(), prompts(2)
    tokens = np.array([[STOP] + [0] * 11, [*range(1, 12), 3]] * 2)
    mask = np.array([[True] + [False] * 11, [True] * 12] * 2)
    found = score(model, layout(asked, tokens, mask, CPU), 1.0).logp.detach()
    assert torch.allclose(found, plain_logp(model, asked, tokens, mask, 1.0), atol=1e-5)
    only = score(model, layout(asked, tokens[::2], mask[::2], CPU), 1.0).logp.detach()
    assert torch.allclose(only, found[::2], atol=1e-5)


def test_a_completion_ends_with_the_end_sign_or_is_cut_off() -> None:
    done = sampled(lively(), prompts(4), 16, longest=8)
    lengths, ended = done.mask.sum(axis=-1), (done.mask & (done.tokens == STOP)).any(axis=-1)
    assert ended.any() and not ended.all()
    for row, length in enumerate(lengths):
        assert not (done.tokens[row, : length - 1] == STOP).any()
        assert ended[row] == (done.tokens[row, length - 1] == STOP)
        assert ended[row] or length == 8


def test_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    model, asked, draws = lively(seed=4), prompts(1), 4000
    uniforms = np.random.default_rng(0).random((draws, 1))
    done = sample(
        model,
        SamplingRequest(
            prompt_tokens=asked,
            prompt_of=np.zeros(draws, int),
            uniforms=uniforms,
            temperature=1.5,
            poll=lambda done, total: None,
        ),
    )
    place = layout(asked, done.tokens[:1], done.mask[:1], CPU)
    expected = draws * score(model, place, 1.5).dist_logp[0].exp().detach().numpy()
    seen = np.bincount(done.tokens[:, 0], minlength=len(expected))
    often = expected > 5
    distance = ((seen - expected)[often] ** 2 / expected[often]).sum()
    assert distance < 2.5 * often.sum() + 10


def test_a_greedy_row_takes_the_likeliest_token_each_time() -> None:
    model, asked = lively(), prompts(2)
    greedy = np.array([True, False, True, False])
    uniforms = np.random.default_rng(0).random((4, 10))
    done = sample(
        model,
        SamplingRequest(
            prompt_tokens=asked,
            prompt_of=np.array([0, 0, 1, 1]),
            uniforms=uniforms,
            temperature=1.0,
            likeliest=greedy,
            poll=lambda done, total: None,
        ),
    )
    place = layout(asked, done.tokens, done.mask, CPU)
    best = score(model, place, 1.0).dist_logp.argmax(dim=-1)[place.context].numpy()
    assert (best == done.tokens)[done.mask & greedy[:, None]].all()
    assert not (best == done.tokens)[done.mask & ~greedy[:, None]].all()


def test_sampling_asks_before_every_token_and_passes_on_what_is_raised() -> None:
    calls = 0

    def poll(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise InterruptedError

    model, asked = lively(), prompts(2)
    with pytest.raises(InterruptedError):
        sample(
            model,
            SamplingRequest(
                prompt_tokens=asked,
                prompt_of=np.zeros(8, int),
                uniforms=np.full((8, 12), 0.5),
                temperature=1.0,
                poll=poll,
            ),
        )
    assert calls == 3


def test_the_number_of_parameters_is_known_without_the_model() -> None:
    assert parameters(TINY) == sum(weight.numel() for weight in lively().parameters())
