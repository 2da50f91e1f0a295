"""Sampling with a cache: what ends it, what it draws, and that rows do not affect each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.lm import sampler
from grpo_core.lm.interface import Table
from grpo_core.lm.model import Transformer, layout, score
from grpo_core.lm.sampler import sample
from grpo_core.lm.sampling import ALIKE
from grpo_core.lm.vocabulary import STOP, VOCABULARY
from tests.core.lm.models import CPU, lively, prompts, requested, sampled


def drawn(seed: int, rows: int, *, count: int = 1, longest: int = 12, temperature: float = 1.0) -> Table:
    numbers = np.random.default_rng(seed).random((rows, longest))
    return sample(MODEL, requested(prompts(count), numbers, temperature=temperature))


MODEL = lively(seed=4)


def first_distribution(temperature: float) -> np.ndarray:
    asked = prompts(1)
    place = layout(asked, np.zeros((1, 1), dtype=int), np.ones((1, 1), dtype=bool), CPU)
    with torch.no_grad():
        return score(MODEL, place, temperature).dist_logp[0].exp().double().numpy()


@pytest.mark.parametrize("temperature", [0.8, 1.0, 3.0])
def test_first_tokens_come_as_often_as_their_probability_says(temperature: float) -> None:
    draws, expected = 4000, first_distribution(temperature)
    seen = np.bincount(drawn(7, draws, longest=1, temperature=temperature).tokens[:, 0], minlength=len(expected))
    often = draws * expected >= 5
    rest = [seen[~often].sum()], [draws * expected[~often].sum()]
    keep = rest[1][0] > 1
    counts = np.append(seen[often], rest[0] if keep else [])
    wanted = np.append(draws * expected[often], rest[1] if keep else [])
    assert often.sum() > 4
    freedom = len(wanted) - 1
    assert ((counts - wanted) ** 2 / wanted).sum() < freedom + 4 * np.sqrt(2 * freedom), "four sigma of chi-square"


def test_second_tokens_depend_on_the_first_as_the_model_says() -> None:
    done = drawn(8, 3000, longest=2)
    common = int(np.bincount(done.tokens[:, 0][done.tokens[:, 0] != STOP]).argmax())
    after = done.tokens[done.tokens[:, 0] == common][:, 1]
    place = layout(prompts(1), np.array([[common, 0]]), np.ones((1, 2), dtype=bool), CPU)
    with torch.no_grad():
        expected = score(MODEL, place, 1.0).dist_logp[1].exp().double().numpy()
    share = np.bincount(after, minlength=len(VOCABULARY)) / len(after)
    spread = np.sqrt(expected * (1 - expected) / len(after))
    assert (np.abs(share - expected) < 4.5 * spread + 1e-3).all()


def test_a_row_depends_on_its_own_prompt_and_random_numbers_alone() -> None:
    asked, numbers = prompts(3), np.random.default_rng(3).random((9, 12))
    of = np.array([0, 0, 1, 2, 1, 0, 2, 2, 1])
    together = sample(MODEL, requested(asked, numbers, prompt_of=of))
    for row, prompt in enumerate(of):
        own = asked[prompt][asked[prompt] >= 0][None]
        alone = sample(MODEL, requested(own, numbers[row : row + 1]))
        assert np.array_equal(alone.tokens[0], together.tokens[row])
        assert np.allclose(alone.logp[0], together.logp[row], atol=1e-5)


def test_completions_that_begin_alike_are_computed_together_until_they_part(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = list[int]()
    made = sampler.decoder

    def counting(model: Transformer) -> Callable[..., torch.Tensor]:
        decode = made(model)

        def counted(token: torch.Tensor, *rest: Any) -> torch.Tensor:
            entries.append(len(token))
            return decode(token, *rest)

        return counted

    monkeypatch.setattr(sampler, "decoder", counting)
    numbers = np.random.default_rng(3).random((4, 12)).repeat(16, axis=0)
    numbers[:, 3:] = np.random.default_rng(5).random((64, 9))
    done = sample(MODEL, requested(prompts(2), numbers))
    begun = [len({(row % 2, *done.tokens[row, : t + 1]) for row in range(64) if done.mask[row, t]}) for t in range(12)]
    assert entries[0] == ALIKE and begun[0] <= 8, "as few as are computed alike in any company"
    assert all(entries[t] < 64 for t in range(3)) and max(begun) > ALIKE, "they share what they begin with, then part"
    by_prompt = np.argsort(np.arange(64) % 2, kind="stable")
    with torch.no_grad():
        place = layout(prompts(2), done.tokens[by_prompt], done.mask[by_prompt], CPU)
        expected = score(MODEL, place, 1.0).logp.numpy()
    assert np.abs(done.logp[by_prompt] - expected).max() < 1e-5


def test_the_table_is_as_long_as_allowed_and_empty_behind_each_end() -> None:
    done = drawn(5, 40, count=4)
    assert done.tokens.shape == done.mask.shape == done.logp.shape == (40, 12)
    lengths = done.mask.sum(axis=-1)
    assert lengths.min() >= 1
    assert np.array_equal(done.mask, np.arange(12) < lengths[:, None]), "no gaps"
    assert (done.tokens[~done.mask] == 0).all() and (done.logp[~done.mask] == 0).all()
    assert (done.logp[done.mask] < 0).all()


def test_a_completion_ends_with_the_end_sign_or_is_cut_off() -> None:
    done = sampled(lively(), prompts(4), 16, longest=8)
    lengths, ended = done.mask.sum(axis=-1), (done.mask & (done.tokens == STOP)).any(axis=-1)
    assert ended.any() and not ended.all()
    for row, length in enumerate(lengths):
        assert not (done.tokens[row, : length - 1] == STOP).any()
        assert ended[row] == (done.tokens[row, length - 1] == STOP)
        assert ended[row] or length == 8


def test_a_greedy_row_takes_the_likeliest_token_each_time() -> None:
    asked, greedy = prompts(2), np.array([True, False, True, False])
    uniforms = np.random.default_rng(0).random((4, 10))
    done = sample(MODEL, requested(asked, uniforms, prompt_of=np.array([0, 0, 1, 1]), likeliest=greedy))
    place = layout(asked, done.tokens, done.mask, CPU)
    best = score(MODEL, place, 1.0).dist_logp.argmax(dim=-1)[place.context].numpy()
    assert (best == done.tokens)[done.mask & greedy[:, None]].all()
    assert not (best == done.tokens)[done.mask & ~greedy[:, None]].all()


def test_random_numbers_at_either_end_draw_a_token_that_can_be() -> None:
    for number in (0.0, 1 - 2**-24):
        done = sample(MODEL, requested(prompts(2), np.full((2, 6), number)))
        assert (done.logp[done.mask] > -12).all()


def test_a_very_cold_sampler_takes_the_likeliest_token() -> None:
    asked = prompts(4)
    numbers = np.random.default_rng(0).random((40, 12))
    done = sample(MODEL, requested(asked, numbers, prompt_of=np.arange(40) // 10, temperature=0.01))
    place = layout(asked, done.tokens, done.mask, CPU)
    with torch.no_grad():
        warm = score(MODEL, place, 1.0)
    behind = warm.dist_logp.amax(dim=-1)[place.context] - warm.logp
    assert float(behind[place.mask].max()) < 0.15, "e^(−15) is never drawn"


@pytest.mark.parametrize("longest", [1, 5])
def test_it_is_asked_once_before_each_token_and_no_more_when_all_rows_have_ended(longest: int) -> None:
    asked = list[tuple[int, int]]()

    def poll(done: int, total: int) -> None:
        asked.append((done, total))

    numbers = np.random.default_rng(0).random((6, longest))
    done = sample(MODEL, requested(prompts(2), numbers, poll=poll))
    assert asked == [(token + 1, longest) for token in range(done.mask.sum(axis=-1).max())]
