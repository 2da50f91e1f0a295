"""L7: which prompts teach the most, by keyboard and over many seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grpo_core.advantages import equal_rewards
from grpo_core.bandit.simulate import updates
from grpo_core.teaching.lessons.theory import bias_of, dead_share
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import DOWN, UP, known, settings_of

SEEDS = range(32)
PROMPTS, SIZE = 64, 8


def norms(chance: float, first: int = 0, std: str = "sample") -> np.ndarray:
    """Return the gradient norm of the first update for every seed, with the settings of the lesson."""
    settings = settings_of("difficulty").replace({"task.bias": -bias_of(chance), "objective.std": std})
    done = next(updates(settings, range(first, first + len(SEEDS))))
    return np.sqrt((done.gradient[0] ** 2).sum(axis=(1, 2)))


def error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def test_it_is_walked_by_keyboard_and_the_run_agrees(pupil: Pupil) -> None:
    known(pupil, "difficulty", {2: 2, 3: 1, 4: 1, 5: 2, 6: UP, 7: DOWN})


@pytest.mark.parametrize("chance", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("std", ["sample", "none"])
def test_the_signal_is_symmetric_and_largest_at_one_half(chance: float, std: str) -> None:
    hard, easy, half = (norms(p, first, std) for p, first in ((chance, 0), (1 - chance, 500), (0.5, 900)))
    spread = math.hypot(error(hard), error(easy))
    assert hard.mean() == pytest.approx(easy.mean(), abs=4 * spread)
    assert half.mean() - hard.mean() > 4 * math.hypot(error(half), error(hard))


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.5, 0.9])
def test_dividing_by_std_leaves_the_root(chance: float) -> None:
    """A group pushes by √(p̂(1 − p̂)), whose square averages p(1 − p)(G − 1)/G; two logits per prompt, P prompts."""
    found = norms(chance) ** 2
    push = chance * (1 - chance) * (SIZE - 1) / SIZE * (SIZE - 1) / SIZE
    assert found.mean() == pytest.approx(2 * push / PROMPTS, abs=4 * error(found) + 0.001 * push / PROMPTS)


@pytest.mark.parametrize("chance", [0.02, 0.1])
def test_dividing_by_std_lifts_the_extremes(chance: float) -> None:
    with_std = norms(chance).mean() / norms(0.5).mean()
    without = norms(chance, std="none").mean() / norms(0.5, std="none").mean()
    assert without < 0.9 * with_std


def test_drawing_again_fills_the_batch_and_flatters_its_reward() -> None:
    settings = settings_of("difficulty").replace({"task.bias": -bias_of(0.1)})
    plain, again = (next(updates(settings.replace({"learner.resample_dead": on}), SEEDS)) for on in (False, True))
    dead = [equal_rewards(x.batch.rewards.reshape(len(SEEDS), PROMPTS, SIZE)).mean() for x in (plain, again)]
    expected = dead_share(0.1, SIZE)
    spread = math.sqrt(expected * (1 - expected) / (len(SEEDS) * PROMPTS))
    assert dead[0] == pytest.approx(expected, abs=4 * spread)
    assert dead[1] < 0.01
    alive = (0.1 - 0.1**SIZE) / (1 - expected)  # mean reward of a group that has both
    spread = 0.15 / math.sqrt(len(SEEDS) * PROMPTS)  # such a group's mean reward strays by less
    assert again.batch.rewards.mean() == pytest.approx(alive, abs=4 * spread)


@pytest.mark.parametrize("first", [0, 300])
def test_training_walks_through_the_sweet_spot(first: int) -> None:
    settings = settings_of("difficulty").replace({"task.bias": -bias_of(0.05)})
    reward, norm = [], []
    for done in updates(settings, range(first, first + 8)):
        reward.append(done.batch.rewards.mean(axis=-1))
        norm.append(np.sqrt((done.gradient[0] ** 2).sum(axis=(1, 2))))
        if done.state.step == 120:
            break
    rewards, sizes = np.array(reward), np.array(norm)
    best = sizes.argmax(axis=0)
    assert np.all(np.abs(rewards[best, np.arange(8)] - 0.5) < 0.2)  # 512 answers: four standard errors are 0.09
    assert np.all(sizes[-1] < sizes.max(axis=0) / 2)
    assert np.all(sizes[0] < sizes.max(axis=0) * 0.7)
