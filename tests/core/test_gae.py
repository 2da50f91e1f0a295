"""Generalised advantage estimation."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.advantages import gae
from grpo_core.arrays import to_numpy
from grpo_core.testing import cases

REWARDS = np.array([[0.0, 0.0, 1.0]])
VALUES = np.array([[0.5, 0.4, 0.7]])
EVERY = np.full((1, 3), True)


def test_the_last_token_sees_the_reward_and_the_others_look_ahead() -> None:
    # γ = 0.9, λ = 0.5: δ = 0.9·0.4 − 0.5 = −0.14, 0.9·0.7 − 0.4 = 0.23, 1 − 0.7 = 0.3
    # A3 = 0.3; A2 = 0.23 + 0.45·0.3 = 0.365; A1 = −0.14 + 0.45·0.365 = 0.02425
    assert gae(REWARDS, VALUES, EVERY, gamma=0.9, lam=0.5)[0].tolist() == pytest.approx([0.02425, 0.365, 0.3])


def test_lambda_zero_is_one_step_and_lambda_one_the_whole_return() -> None:
    np.testing.assert_allclose(gae(REWARDS, VALUES, EVERY, gamma=1.0, lam=0.0), [[-0.1, 0.3, 0.3]], atol=1e-15)
    # γ = λ = 1: return to go minus value
    np.testing.assert_allclose(gae(REWARDS, VALUES, EVERY, gamma=1.0, lam=1.0), [[0.5, 0.6, 0.3]], atol=1e-15)


@pytest.mark.parametrize("places", [[0, 1, 2], [2, 3, 4], [0, 2, 4], [1, 2, 4]])
def test_masked_places_are_skipped_wherever_they_stand(places: list[int]) -> None:
    mask = np.full((1, 5), False)
    rewards, values = np.full((1, 5), np.nan), np.full((1, 5), np.inf)
    mask[0, places], rewards[0, places], values[0, places] = True, REWARDS, VALUES
    found = gae(rewards, values, mask, gamma=0.9, lam=0.5)
    assert found[0, places].tolist() == pytest.approx([0.02425, 0.365, 0.3])
    assert (found[~mask] == 0).all()


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_every_library_and_every_run_gives_the_sum_of_the_definition(backend: str) -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 3, 6)), rng.normal(size=(2, 3, 6))
    mask = rng.random((2, 3, 6)) < 0.7
    mask[0, 0] = False
    expected = np.zeros_like(values)
    for row in np.ndindex(2, 3):
        real = np.flatnonzero(mask[row])
        for i, t in enumerate(real):
            for step, u in enumerate(real[i:]):
                after = real[i + step + 1] if i + step + 1 < len(real) else None
                delta = rewards[row][u] + 0.9 * (0.0 if after is None else values[row][after]) - values[row][u]
                expected[row][t] += (0.9 * 0.8) ** step * delta
    there = cases.converter(backend)
    found = to_numpy(gae(there(rewards), there(values), there(mask), gamma=0.9, lam=0.8))
    np.testing.assert_allclose(found, expected, atol=1e-14)
