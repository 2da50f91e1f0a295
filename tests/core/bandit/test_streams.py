from __future__ import annotations

import numpy as np
import pytest

from grpo_core.bandit.streams import Streams


@pytest.mark.parametrize("count", [1, 8, 3000, 5000])
def test_a_run_draws_the_same_numbers_alone_and_in_company(count: int) -> None:
    alone, many = Streams([5]), Streams([9, 5, 2**63 - 1])
    for step in (1, 2, 63, 64, 65, 1000):
        np.testing.assert_array_equal(alone.uniforms(step, count)[0], many.uniforms(step, count)[1])


def test_numbers_do_not_depend_on_what_was_drawn_before() -> None:
    straight, back = Streams([3]), Streams([3])
    numbers = [straight.uniforms(step, 8).copy() for step in range(1, 200)]
    for step in (199, 1, 64, 63, 128):
        np.testing.assert_array_equal(back.uniforms(step, 8), numbers[step - 1])


def test_updates_seeds_and_attempts_draw_different_numbers() -> None:
    streams = Streams([0, 1])
    drawn = [streams.uniforms(step, 8)[run].copy() for step in range(1, 130) for run in (0, 1)]
    drawn += [streams.again(step, 8, attempt, np.array([0]))[0] for step in range(1, 20) for attempt in (1, 2)]
    flat = np.concatenate(drawn)
    assert len(np.unique(flat)) == flat.size


def test_further_attempts_are_the_same_alone_and_in_company() -> None:
    alone, many = Streams([7]), Streams(range(10))
    np.testing.assert_array_equal(alone.again(4, 8, 2, np.array([0])), many.again(4, 8, 2, np.array([7])))


def test_the_numbers_are_uniform() -> None:
    flat = np.concatenate([Streams(range(200)).uniforms(step, 8).ravel() for step in range(1, 20)])
    assert 0 <= flat.min() < flat.max() < 1
    counts, _ = np.histogram(flat, bins=20, range=(0, 1))
    expected = flat.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # 99.9 % point of chi-squared, 19 degrees of freedom


def test_a_lone_run_travels_with_a_twin() -> None:
    streams = Streams([4])
    assert streams.runs == 2
    np.testing.assert_array_equal(*streams.uniforms(1, 8))
