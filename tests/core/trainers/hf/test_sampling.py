"""Completions are sampled as if each were alone, although shared prefixes are computed only once; on a device, with few
waits for it.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core import progress
from grpo_core.lm import device_sampling
from grpo_core.lm.device_sampling import LOOK, Graphs, TokenStep
from grpo_core.lm.interface import ReadRows, SamplingRequest, Table
from grpo_core.lm.problems import Prompt
from grpo_core.progress import Progress
from grpo_core.trainers.hf.adapter import spare_launches
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.loading import libraries
from grpo_core.trainers.hf.sampling import CachedRows, is_plain, prepared_cache, sample, sampled_on_device
from grpo_core.trainers.hf.scoring import proved
from tests.core.lm.fake_cuda import fake_cuda
from tests.core.lm.graphs import Recorded
from tests.core.lm.waiting import waits
from tests.core.trainers.hf.test_families import like_llama
from tests.core.trainers.hf.tiny import KINDS, small

QUESTIONS = (Prompt("What is 7 plus 5?", "12"), Prompt("Hi", ""), Prompt("What is 7 plus 5?", "12"))


def request(
    policy: FolderPolicy, prompt_of: np.ndarray, uniforms: np.ndarray, greedy: np.ndarray, **more: Any
) -> SamplingRequest:
    return SamplingRequest(
        prompt_tokens=policy.encoded(QUESTIONS),
        prompt_of=prompt_of,
        uniforms=uniforms,
        temperature=0.8,
        likeliest=greedy,
        **{"poll": lambda done, total: None, **more},
    )


def drawn(policy: FolderPolicy, *given: np.ndarray, **more: Any) -> Table:
    return policy.sample(request(policy, *given, **more))


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

    given = np.arange(8) % 3, numbers.random((8, 7)), np.zeros(8, dtype=bool)
    tokens, mask, _ = drawn(policy, *given, poll=poll, drawing=readers.append)
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


def on_device(policy: FolderPolicy, *given: np.ndarray, **how: Any) -> Table:
    return sampled_on_device(policy.model, request(policy, *given), **{"ends": (0, 1), "padding": True, **how})


def asked(rows: int, longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the prompt of each row, the uniforms, and which rows are greedy."""
    return np.arange(rows) % 3, np.random.default_rng(3).random((rows, longest)), np.arange(rows) % 4 == 0


@pytest.mark.parametrize("how", [{}, {"padding": False}, {"prepared": False}, {"at_once": 7}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_completions_are_those_of_the_cpu(
    kind: str, how: dict[str, Any], folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_sampling, "LOOK", 5)
    policy, given = FolderPolicy(small(folders[kind])), asked(90, 24)
    cpu, device = drawn(policy, *given), on_device(policy, *given, **how)
    same = (cpu[0] == device[0]).all(axis=-1) & (cpu[1] == device[1]).all(axis=-1)
    assert (~same).sum() < max(1e-3 * cpu[1].sum(), 1)
    assert np.abs(cpu[2] - device[2])[same].max() < 1e-4
    assert len({*cpu[1].sum(axis=-1).tolist()}) > 3, "rows end at several tokens, and are left out"


def test_in_float32_at_most_one_draw_in_a_thousand_differs(folders: dict[str, Path]) -> None:
    policy, given = FolderPolicy(small(folders["llama"])), asked(300, 12)
    cpu, device = drawn(policy, *given), on_device(policy, *given, kind=torch.float32)
    parted = ~((cpu[0] == device[0]).all(axis=-1) & (cpu[1] == device[1]).all(axis=-1))
    assert parted.sum() < 1e-3 * cpu[1].sum()


@pytest.mark.parametrize("kind", KINDS)
def test_the_host_waits_at_looks_and_for_the_result_alone(kind: str, folders: dict[str, Path]) -> None:
    policy, longest = FolderPolicy(small(folders[kind])), 64
    given = asked(12, longest)
    with waits() as seen:
        _, mask, _ = on_device(policy, *given, ends=(100_000,))
    assert mask.all()
    assert sum(seen.values()) / longest <= 0.05
    assert dict(seen) == {"cpu": 1 + (longest - 1) // LOOK}
    with waits() as seen:
        _, mask, _ = drawn(policy, *given)
    assert sum(seen.values()) / mask.any(axis=0).sum() > 3, "what is counted is there to be counted"


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_can_be_a_graph_draws_the_same_tokens_and_is_kept(kind: str, folders: dict[str, Path]) -> None:
    policy, given = FolderPolicy(small(folders[kind])), asked(12, 8)
    recorded, plain = Recorded(policy.model), on_device(policy, *given)
    for _ in range(2):
        replayed = on_device(policy, *given, graphs=recorded.graphs)
        assert np.array_equal(plain[0], replayed[0]) and np.array_equal(plain[1], replayed[1])
        np.testing.assert_allclose(plain[2], replayed[2], atol=1e-4)
    assert len(recorded.steps) == 1
    recorded.check()
    apart = on_device(policy, *given, padding=False, graphs=Graphs([], lambda step: step.next))
    assert np.array_equal(plain[0], apart[0]) and np.array_equal(plain[1], apart[1])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_recorded_waits_for_nothing_on_cuda(kind: str, folders: dict[str, Path]) -> None:
    policy = FolderPolicy(small(folders[kind], model__adapter_rank=4))
    spare_launches(policy.model)
    with torch.no_grad(), fake_cuda() as moved:
        moved(policy.model)
        rows = CachedRows(policy.model, policy.encoded(QUESTIONS), 11, prepared=True)
        step = TokenStep(rows, (12, 12, 64), temperature=0.7, ends=(0, 1), kind=torch.float64)
        step.place(rows, torch.zeros(12, dtype=torch.int64, device="cuda"))
        step.rewind()
        step.next()
        assert step.going.device.type == "cuda"


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_is_allocated_once(kind: str, folders: dict[str, Path]) -> None:
    policy = FolderPolicy(small(folders[kind]))
    with torch.no_grad():
        rows = CachedRows(policy.model, policy.encoded(QUESTIONS), 4, prepared=True)
        rows.keep(torch.tensor([0, 0, 1, 2]))
        assert is_plain(rows.cache)
        before = [layer.keys.untyped_storage().data_ptr() for layer in rows.cache.layers]
        for _ in range(4):
            rows.advance(torch.tensor([5, 6, 7, 8]))
    assert [layer.keys.untyped_storage().data_ptr() for layer in rows.cache.layers] == before


@pytest.mark.parametrize("kind", KINDS)
def test_in_bfloat16_log_probabilities_are_near_those_of_float32(kind: str, folders: dict[str, Path]) -> None:
    policy, given = FolderPolicy(small(folders[kind])), asked(60, 3)
    exact = on_device(policy, *given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = on_device(policy, *given)
    first = exact[0][:, 0] == rounded[0][:, 0]
    assert first.mean() > 0.8
    assert 0 < np.abs(np.exp(exact[2]) - np.exp(rounded[2]))[first, 0].max() < 0.15


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_and_a_mask_of_our_own_are_proved_harmless(kind: str, folders: dict[str, Path]) -> None:
    policy = FolderPolicy(small(folders[kind]))
    assert not policy.ways.prepared, "nobody asks on the CPU"
    ways = proved(policy.model, on_device=True)
    assert ways.prepared and ways.fixed


def test_scoring_waits_for_no_chunk(folders: dict[str, Path]) -> None:
    policy = FolderPolicy(small(folders["llama"], model__rows_at_once=2))
    given = asked(12, 8)
    tokens, mask, _ = drawn(policy, np.sort(given[0]), given[1], given[2])
    batch = policy.batch(policy.encoded(QUESTIONS), tokens, mask)
    with waits() as seen:
        policy.score(batch, 1.0, lambda done, total: None)
    assert set(seen) <= {"_local_scalar_dense", "to"}
    assert sum(seen.values()) <= 2 * 3 * 6 + 2, "what transformers asks of a mask in each of two passes"


@pytest.mark.parametrize("rank", [4, 0])
def test_weights_in_bfloat16_are_sampled_too(rank: int, folders: dict[str, Path]) -> None:
    settings = small(folders["llama"], model__precision="bfloat16", model__adapter_rank=rank)
    policy = FolderPolicy(settings)
    ways = proved(policy.model, tolerance=2e-2, on_device=True)
    assert ways.prepared and ways.fixed
    recorded = Recorded(policy.model)
    with policy.computing(settings):
        tokens, mask, logp = on_device(policy, *asked(12, 6))
        again, _, _ = on_device(policy, *asked(12, 6), graphs=recorded.graphs)
    recorded.check()
    assert (tokens == again).mean() > 0.5
    assert mask[:, 0].all() and np.isfinite(logp).all() and (logp <= 0).all()


def test_a_model_with_sliding_windows_keeps_its_own_cache_and_draws_the_same() -> None:
    transformers, _ = libraries()
    torch.manual_seed(0)
    config = like_llama("MistralConfig", sliding_window=6)(transformers, 120)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8.0 if weight.dim() > 1 else 1.0)
    prompts = np.array([[5, 6, 7, 8, 9, 10, 11, 12], [20, 21, 22, -1, -1, -1, -1, -1]])
    asked_of = SamplingRequest(
        prompt_tokens=prompts,
        prompt_of=np.arange(20) % 2,
        uniforms=np.random.default_rng(0).random((20, 16)),
        temperature=1.0,
        poll=lambda done, total: None,
    )
    cpu = sample(model, asked_of, ends=(1,), padding=False, sharing=True)
    device = sampled_on_device(model, asked_of, ends=(1,), padding=False)
    assert not is_plain(prepared_cache(model, 4))
    recorded = Recorded(model)
    again = sampled_on_device(model, asked_of, ends=(1,), padding=False, graphs=recorded.graphs)
    assert np.array_equal(device[0], again[0]) and not recorded.steps, "its mask is not the same in every layer"
    assert not proved(model, on_device=True).fixed
    assert np.array_equal(cpu[0], device[0]) and np.array_equal(cpu[1], device[1])
    np.testing.assert_allclose(cpu[2], device[2], atol=1e-4)
