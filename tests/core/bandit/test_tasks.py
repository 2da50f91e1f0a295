from __future__ import annotations

import numpy as np
import pytest

from grpo_core.bandit.tasks import END, landscape_rewards, right_actions, task
from grpo_core.config import BanditTask


def test_the_single_peak_is_a_triangle_around_its_peak() -> None:
    rewards = landscape_rewards(BanditTask())
    np.testing.assert_allclose(rewards, [0, 0, 0.2, 0.4, 0.6, 0.8, 1, 0.8, 0.6, 0.4], atol=1e-15)


def test_the_peak_may_stand_between_two_actions() -> None:
    rewards = landscape_rewards(BanditTask(peak=2.5, half_width=2, actions=4))
    np.testing.assert_allclose(rewards, [0.25, 0.75, 0.75, 0.25])


def test_the_double_peak_is_the_higher_of_two_triangles() -> None:
    rewards = landscape_rewards(BanditTask(landscape="double_peak", half_width=2))
    np.testing.assert_allclose(rewards, [0, 0.35, 0.7, 0.35, 0, 0, 0.5, 1, 0.5, 0])
    wide = landscape_rewards(BanditTask(landscape="double_peak", half_width=5))
    assert wide[4] == pytest.approx(max(0.7 * 3 / 5, 2 / 5))


def test_the_linear_landscape_pays_a_tenth_of_the_action() -> None:
    np.testing.assert_allclose(landscape_rewards(BanditTask(landscape="linear", actions=3)), [0.1, 0.2, 0.3])


def test_the_custom_landscape_pays_what_it_is_told() -> None:
    config = BanditTask(landscape="custom", actions=2, custom=(-1.5, 4))
    work = task(config)
    assert work.action_rewards is not None
    np.testing.assert_array_equal(work.action_rewards, [[-1.5, 4]])


def test_every_prompt_adds_its_level() -> None:
    work = task(BanditTask(landscape="linear", actions=2, levels=(0, 10)))
    assert work.action_rewards is not None
    np.testing.assert_allclose(work.action_rewards, [[0.1, 0.2], [10.1, 10.2]])
    tokens = np.array([[[0], [1], [0], [1]]])
    rewards = work.reward(np.array([0, 0, 1, 1]), tokens, np.ones(tokens.shape, bool))
    np.testing.assert_allclose(rewards, [[0.1, 0.2, 10.1, 10.2]])
    assert work.prompts == work.context_names == ("prompt 1", "prompt 2")


def test_the_starting_bias_raises_one_logit_of_every_prompt() -> None:
    work = task(BanditTask(actions=3, bias=2, bias_action=3, levels=(0, 0)))
    np.testing.assert_array_equal(work.start, np.broadcast_to([0, 0, 2.0], (2, 1, 3)))


def test_the_length_toy_pays_for_the_answer_and_not_for_its_length() -> None:
    work = task(BanditTask(landscape="length", max_length=3, levels=(0.5,)))
    tokens = np.array([[[0, 1, 0], [0, 0, 0], [1, 1, 0], [1, 0, 1]]])
    mask = np.array([[[1, 1, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1]]], dtype=bool)
    np.testing.assert_array_equal(work.reward(np.zeros(4, int), tokens, mask), [[1.5, 1.5, 0.5, 0.5]])
    np.testing.assert_array_equal(work.next_state, [[1, 2], [1, END], [2, END]])
    assert work.action_rewards is None


def test_the_chain_pays_the_share_of_right_decisions_and_says_which() -> None:
    config = BanditTask(landscape="chain", max_length=4, actions=10)
    work = task(config)
    np.testing.assert_array_equal(right_actions(config), [0, 3, 6, 9])
    tokens = np.array([[[0, 3, 6, 9], [0, 0, 6, 0]]])
    mask = np.ones(tokens.shape, dtype=bool)
    np.testing.assert_array_equal(work.reward(np.zeros(2, int), tokens, mask), [[1, 0.5]])
    assert work.parts is not None
    np.testing.assert_array_equal(work.parts(np.zeros(2, int), tokens, mask), [[[1, 1, 1, 1], [1, 0, 1, 0]]])
    assert len(work.reward_names) == len(work.context_names) == 4
    np.testing.assert_array_equal(work.next_state[:, 0], [1, 2, 3, END])


@pytest.mark.parametrize("landscape", ["single_peak", "double_peak", "linear", "custom", "length", "chain"])
def test_every_task_names_what_its_arrays_hold(landscape: str) -> None:
    work = task(BanditTask(landscape=landscape, levels=(0, 1, 2)))
    prompts, states, actions = work.start.shape
    assert (len(work.prompts), len(work.vocabulary), len(work.context_names)) == (prompts, actions, prompts * states)
    assert len(set(work.context_names)) == prompts * states
    assert work.next_state.shape == (states, actions)
