"""Sampling without waiting for the device gives the same samples as the CPU, with few waits."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException

from grpo_core.errors import Cancelled
from grpo_core.lm import device_sampling
from grpo_core.lm.device_sampling import GRAPHS, LOOK, Graphs, TokenStep, chances, inverse
from grpo_core.lm.interface import ReadRows, Table
from grpo_core.lm.model import Transformer
from grpo_core.lm.sampler import CachedPrefixes, sample, sampled_on_device
from grpo_core.lm.vocabulary import STOP
from tests.core.lm.fake_cuda import fake_cuda
from tests.core.lm.graphs import Driver, Recorded
from tests.core.lm.models import TINY, lively, prompts, requested
from tests.core.lm.starving import CAPTURE, Starving
from tests.core.lm.waiting import waits

MODEL = lively(seed=4)


def both(rows: int, *, longest: int = 24, temperature: float = 1.0) -> tuple[Table, Table]:
    """Return the same completions sampled as on the CPU, and sampled without waiting."""
    numbers, asked = np.random.default_rng(7).random((rows, longest)), prompts(4)
    request = requested(asked, numbers, temperature=temperature, likeliest=np.arange(rows) % 5 == 0)
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


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_a_step_that_can_be_a_graph_draws_the_same_tokens_and_is_kept(temperature: float) -> None:
    model = lively(seed=4)
    recorded = Recorded(model)
    for seed, prompt_seed in ((7, 0), (8, 3)):
        asked, numbers = prompts(4, seed=prompt_seed), np.random.default_rng(seed).random((600, 24))
        request = requested(asked, numbers, temperature=temperature, likeliest=np.arange(600) % 5 == 0)
        plain, replayed = sampled_on_device(model, request), sampled_on_device(model, request, recorded.graphs)
        assert np.array_equal(plain.tokens, replayed.tokens) and np.array_equal(plain.mask, replayed.mask)
        np.testing.assert_allclose(plain.logp, replayed.logp, atol=1e-5)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(0.9)  # as an update changes them
    assert len(recorded.steps) == 1, "prompts of another length use the same"
    recorded.check()


def test_a_step_that_is_kept_forgets_numbers_that_are_not_finite() -> None:
    model, numbers = lively(seed=4), np.random.default_rng(7).random((8, 6))
    recorded, bias = Recorded(model), model.get_parameter("blocks.0.qkv.bias")
    request = requested(prompts(2), numbers)
    plain, before = sampled_on_device(model, request), bias.detach().clone()
    for broken in (True, False):
        with torch.no_grad():
            bias.copy_(before).add_(float("nan") if broken else 0.0)
        found = sampled_on_device(model, request, recorded.graphs)
    assert len(recorded.steps) == 1
    assert np.array_equal(found.tokens, plain.tokens) and np.isfinite(found.logp).all()


@pytest.mark.skipif(torch.cuda.is_available(), reason="stands in for a driver")
@pytest.mark.parametrize("waiting", [False, True])
def test_a_step_that_waits_for_the_gpu_is_refused_before_its_recording_begins(
    waiting: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A recording that breaks off leaves torch's allocator unable to return cached memory."""
    driver = Driver(monkeypatch)
    rows = CachedPrefixes(MODEL, prompts(2), 6)
    decode = rows.decode

    def asking(*given: Any) -> torch.Tensor:
        assert decode is not None and (not waiting or given[0].sum().item() >= 0)
        return decode(*given)

    rows.decode, graphs = asking, Graphs([])
    request = requested(prompts(2), np.zeros((4, 6)))
    with driver, torch.no_grad():
        assert (graphs.of(rows, request, (STOP,), torch.float32) is None) == waiting
    assert driver.recordings == (0 if waiting else 1) and driver.mode == 0
    assert ["synchronizing" in record.getMessage() for record in caplog.records] == [True] * waiting


def test_what_is_recorded_waits_for_nothing_on_cuda() -> None:
    model = Transformer(TINY)
    with torch.no_grad(), fake_cuda() as moved:
        moved(model)
        rows = CachedPrefixes(model, prompts(4), 12)
        step = TokenStep(rows, (8, 12, 64), temperature=0.7, ends=(STOP,), kind=torch.float32)
        step.place(rows, torch.zeros(8, dtype=torch.int64, device="cuda"))
        step.rewind()
        step.next()
        assert step.going.device.type == "cuda"
        with pytest.raises(DataDependentOutputException):
            bool(step.going.any())
        with pytest.raises(RuntimeError, match="two devices"):
            step.advance(torch.zeros(8, dtype=torch.int64, device="cpu"))


def test_graphs_are_forgotten_beyond_a_few_and_when_weights_move() -> None:
    model = lively(seed=4)
    recorded, asked = Recorded(model), prompts(2)

    def sample_rows(rows: int) -> int:
        numbers = np.random.default_rng(0).random((rows, 3))
        request = requested(asked, numbers)
        sampled_on_device(model, request, recorded.graphs)
        return len(recorded.steps)

    assert [sample_rows(rows) for rows in (2, 3, 2, 3)] == [1, 2, 2, 2]
    assert GRAPHS == 2 and sample_rows(4) == 3 and sample_rows(3) == 3
    assert sample_rows(2) == 4, "the one that was used least recently is gone"
    model.norm.weight.data = model.norm.weight.detach().clone()
    assert sample_rows(2) == 5


@pytest.mark.parametrize("starved", [False, True], ids=["no GPU", "no memory"])
def test_where_no_graph_can_be_recorded_the_same_is_sampled_and_it_is_logged_once(
    starved: bool, caplog: pytest.LogCaptureFixture
) -> None:
    graphs, numbers = Graphs([]), np.random.default_rng(7).random((8, 6))  # which looks for a GPU
    request = requested(prompts(2), numbers)
    plain, hungry = sampled_on_device(MODEL, request), Starving(CAPTURE, times=int(starved))
    for _ in range(2):
        with hungry:
            assert np.array_equal(sampled_on_device(MODEL, request, graphs).tokens, plain.tokens)
    assert hungry.left == 0
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("tokens are sampled without CUDA graphs: " + "OutOfMemoryError: CUDA" * starved)


def test_a_cancelled_recording_is_cancelled_and_tried_again() -> None:
    def cancelled(step: TokenStep) -> Callable[[], None]:
        raise Cancelled("the run was interrupted")

    graphs = Graphs([], cancelled)
    request = requested(prompts(2), np.zeros((4, 3)))
    for _ in range(2):
        with pytest.raises(Cancelled):
            sampled_on_device(MODEL, request, graphs)


def test_graphs_are_freed_first_then_after_each_use_and_then_no_longer_recorded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorded = Recorded(MODEL)
    request = requested(prompts(2), np.zeros((4, 3)))

    def free_while_drawing(done: int, total: int) -> None:
        if done == 2:
            assert recorded.graphs.make_space() and not recorded.graphs.make_space()

    sampled_on_device(MODEL, request, recorded.graphs)
    free_while_drawing(2, 3)
    for _ in range(2):
        sampled_on_device(MODEL, request, recorded.graphs)
        assert not recorded.graphs.make_space(), "nothing is kept while the model learns"
    assert len(recorded.steps) == 3 and not caplog.records
    sampled_on_device(MODEL, dataclasses.replace(request, poll=free_while_drawing), recorded.graphs)
    assert [record.getMessage() for record in caplog.records] == [
        "tokens are sampled without CUDA graphs: memory is short"
    ]
    sampled_on_device(MODEL, request, recorded.graphs)
    assert len(recorded.steps) == 4, "none is recorded any more"


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("longest", [24, 40])
def test_the_host_waits_at_looks_and_for_the_result_alone(longest: int, graph: bool) -> None:
    model = lively(seed=4)
    with torch.no_grad():
        model.norm.bias.fill_(1.0)
        model.embed.weight[STOP] -= 100  # what is normalised has mean 0 without the bias: it never ends by itself
    asked = prompts(2)[:, : TINY.context - longest]
    numbers = np.random.default_rng(0).random((16, longest))
    with waits() as seen:
        done = sampled_on_device(
            model, requested(asked, numbers), Graphs([], lambda step: step.next) if graph else None
        )
    assert done.mask.all()
    assert dict(seen) == {"cpu": 1 + (longest - 1) // LOOK}
    assert sum(seen.values()) / longest <= 0.05
    with waits() as seen:
        sample(model, requested(asked, numbers))
    assert sum(seen.values()) / longest > 3, "what is counted is there to be counted"


def test_rows_that_have_ended_are_left_out_after_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_sampling, "LOOK", 2)
    cpu, device = both(64)
    assert np.array_equal(cpu.tokens, device.tokens) and np.array_equal(cpu.mask, device.mask)
    assert len({*cpu.mask.sum(axis=-1).tolist()}) > 3, "they end at several tokens"


@pytest.mark.parametrize("graphs", [None, Graphs([], lambda step: step.next)], ids=["plain", "graph"])
def test_what_is_read_while_it_is_sampled_grows_to_what_is_drawn(graphs: Graphs | None) -> None:
    readers, told = list[ReadRows](), list[list[list[int]]]()

    def poll(done: int, total: int) -> None:
        tokens, mask, stopped = readers[0](slice(2, 6))
        told.append([own[kept].tolist() for own, kept in zip(tokens, mask, strict=True)])
        assert all(stops == (STOP in own) for own, stops in zip(told[-1], stopped, strict=True))

    numbers = np.random.default_rng(5).random((8, 12))
    done = sampled_on_device(MODEL, requested(prompts(2), numbers, drawing=readers.append, poll=poll), graphs)
    told.append([done.tokens[row][done.mask[row]].tolist() for row in range(2, 6)])
    assert told[0] == [[]] * 4
    for before, after in itertools.pairwise(told):
        assert all(now == later[: len(now)] for now, later in zip(before, after, strict=True))


def test_in_bfloat16_probabilities_are_near_those_of_float32() -> None:
    numbers, asked = np.random.default_rng(7).random((400, 6)), prompts(4)
    request = requested(asked, numbers)
    exact = sampled_on_device(MODEL, request)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = sampled_on_device(MODEL, request)
    first = exact.tokens[:, 0] == rounded.tokens[:, 0]
    assert rounded.logp.dtype == np.float32
    assert 0.9 < first.mean() <= 1.0
    assert 0 < np.abs(np.exp(exact.logp) - np.exp(rounded.logp))[first, 0].max() < 0.1
