"""Sampling without waiting for the device gives the same samples as the CPU, with few waits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from grpo_core.lm import device_sampling
from grpo_core.lm.device_sampling import LOOK, chances, inverse
from grpo_core.lm.interface import ReadRows, SamplingRequest
from grpo_core.lm.sampler import sample, sampled_on_device
from grpo_core.lm.sampling import Sampled
from grpo_core.lm.vocabulary import STOP
from tests.core.lm.models import TINY, lively, prompts
from tests.core.lm.waiting import waits

MODEL = lively(seed=4)


def never(done: int, total: int) -> None:
    """Do nothing when polled."""


def both(rows: int, *, longest: int = 24, temperature: float = 1.0) -> tuple[Sampled, Sampled]:
    """Return the same completions sampled as on the CPU, and sampled without waiting."""
    numbers, asked = np.random.default_rng(7).random((rows, longest)), prompts(4)
    request = SamplingRequest(
        prompt_tokens=asked,
        prompt_of=np.arange(rows) % 4,
        uniforms=numbers,
        temperature=temperature,
        likeliest=np.arange(rows) % 5 == 0,
        poll=never,
    )
    return sample(MODEL, request), sampled_on_device(MODEL, request)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_completions_are_those_of_the_cpu(temperature: float) -> None:
    cpu, device = both(2000, temperature=temperature)
    same = (cpu.tokens == device.tokens).all(axis=-1) & (cpu.mask == device.mask).all(axis=-1)
    assert cpu.mask.sum() > 8000
    assert (~same).sum() < 1e-3 * cpu.mask.sum(), "fewer than one draw in a thousand differs"
    assert np.abs(cpu.logp - device.logp)[same].max() < 1e-4


def test_a_draw_in_float32_differs_at_ties_alone() -> None:
    logits = torch.randn(64, 50_000, generator=torch.Generator().manual_seed(0)) * 4
    dist, differing = torch.log_softmax(logits, dim=-1), 0
    cumulative = dist.double().exp().cumsum(dim=-1)
    for seed in range(40):
        uniforms = np.random.default_rng(seed).random(64)
        exact = inverse(dist, torch.from_numpy(chances(uniforms, torch.float64)))
        rounded = inverse(dist, torch.from_numpy(chances(uniforms, torch.float32)))
        other = (exact != rounded).nonzero()[:, 0]
        differing += len(other)
        low = torch.minimum(exact, rounded)[other]
        boundary = cumulative[other, low] / cumulative[other, -1]
        for row, edge in zip(other.tolist(), boundary.tolist(), strict=True):
            assert abs(edge - uniforms[row]) < 2e-6, "only where the random number is as good as on the boundary"
    assert differing < 3, "of 2560 draws"


@pytest.mark.parametrize("longest", [24, 40])
def test_the_host_waits_at_looks_and_for_the_result_alone(longest: int) -> None:
    model = lively(seed=4)
    with torch.no_grad():
        model.norm.bias.fill_(1.0)
        model.embed.weight[STOP] -= 100  # what is normalised has mean 0 without the bias: it never ends by itself
    asked = prompts(2)[:, : TINY.context - longest]
    numbers = np.random.default_rng(0).random((16, longest))
    with waits() as seen:
        done = sampled_on_device(
            model,
            SamplingRequest(
                prompt_tokens=asked, prompt_of=np.arange(16) % 2, uniforms=numbers, temperature=1.0, poll=never
            ),
        )
    assert done.mask.all()
    assert dict(seen) == {"cpu": 1 + (longest - 1) // LOOK}
    assert sum(seen.values()) / longest <= 0.05
    with waits() as seen:
        sample(
            model,
            SamplingRequest(
                prompt_tokens=asked, prompt_of=np.arange(16) % 2, uniforms=numbers, temperature=1.0, poll=never
            ),
        )
    assert sum(seen.values()) / longest > 3, "what is counted is there to be counted"


def test_rows_that_have_ended_are_left_out_after_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_sampling, "LOOK", 2)
    cpu, device = both(64)
    assert np.array_equal(cpu.tokens, device.tokens) and np.array_equal(cpu.mask, device.mask)
    assert len({*cpu.mask.sum(axis=-1).tolist()}) > 3, "they end at several tokens"


def test_what_is_read_while_it_is_sampled_grows_to_what_is_drawn() -> None:
    readers, told = list[ReadRows](), list[list[list[int]]]()

    def poll(done: int, total: int) -> None:
        tokens, mask, stopped = readers[0](slice(2, 6))
        told.append([own[kept].tolist() for own, kept in zip(tokens, mask, strict=True)])
        assert all(stops == (STOP in own) for own, stops in zip(told[-1], stopped, strict=True))

    numbers = np.random.default_rng(5).random((8, 12))
    done = sampled_on_device(
        MODEL,
        SamplingRequest(
            prompt_tokens=prompts(2),
            prompt_of=np.arange(8) % 2,
            uniforms=numbers,
            temperature=1.0,
            poll=poll,
            drawing=readers.append,
        ),
    )
    told.append([done.tokens[row][done.mask[row]].tolist() for row in range(2, 6)])
    assert told[0] == [[]] * 4
    for before, after in itertools.pairwise(told):
        assert all(now == later[: len(now)] for now, later in zip(before, after, strict=True))


def test_in_bfloat16_probabilities_are_near_those_of_float32() -> None:
    numbers, asked = np.random.default_rng(7).random((400, 6)), prompts(4)
    request = SamplingRequest(
        prompt_tokens=asked, prompt_of=np.arange(400) % 4, uniforms=numbers, temperature=1.0, poll=never
    )
    exact = sampled_on_device(MODEL, request)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = sampled_on_device(MODEL, request)
    first = exact.tokens[:, 0] == rounded.tokens[:, 0]
    assert rounded.logp.dtype == np.float32
    assert 0.9 < first.mean() <= 1.0
    assert 0 < np.abs(np.exp(exact.logp) - np.exp(rounded.logp))[first, 0].max() < 0.1
