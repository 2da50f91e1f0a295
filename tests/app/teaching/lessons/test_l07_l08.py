"""L7 and L8: which prompts teach the most, and temperature, diversity and signal, against theory over many seeds."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest

from app.teaching.lessons.interactives.temperature import DISTINCT, LIVE, REWARD, Temperature
from grpo_core.advantages import equal_rewards
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.simulate import start, updates
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.learners import learner
from grpo_core.teaching.lessons.experiments.temperatures import (
    LANGUAGE_TEMPERATURES,
    SEEDS,
    TEMPERATURES,
    distinct,
    first_pass,
    groups_at,
    groups_of,
    language_at,
)
from grpo_core.teaching.lessons.theory import bias_of, dead_share
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import settings_of

pytestmark = pytest.mark.one_window

PROMPTS, SIZE = 64, 8
GROUPS = SEEDS * PROMPTS
FIRST = [0, 500, 1000]
RIGHT = 6


def chances(settings: Settings, temperature: float) -> np.ndarray:
    """Return the starting policy at a temperature, (A,)."""
    return np.exp(policy.log_probs(start(task(settings.bandit), 2).logits, temperature))[0, 0]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("step", [1, 8])
def test_what_is_measured_settles_on_theory(first: int, step: int) -> None:
    """Every share is within five standard errors of 512 groups; the count of a rare kind of group can be off by one."""
    settings = settings_of("temperature", step).replace({"seed": first})
    assert (settings.bandit.prompts, settings.learner.group_size) == (PROMPTS, SIZE)
    found = groups_at(settings, TEMPERATURES)
    for n, temperature in enumerate(TEMPERATURES):
        p = chances(settings, temperature)
        right = p[RIGHT]
        live = 1 - right**SIZE - (1 - right) ** SIZE
        assert found["live"][n] == pytest.approx(live, abs=5 * math.sqrt(live * (1 - live) / GROUPS) + 1 / GROUPS)
        answers = GROUPS * SIZE
        assert found["reward"][n] == pytest.approx(
            right, abs=5 * math.sqrt(right * (1 - right) / answers) + 1 / answers
        )
        missed = (1 - p) ** SIZE
        spread = math.sqrt(float((missed * (1 - missed)).sum()) / GROUPS)  # at most this: answers crowd each other out
        assert found["distinct"][n] == pytest.approx(float((1 - missed).sum()), abs=5 * spread + 1 / GROUPS)


@pytest.mark.parametrize("first", FIRST)
def test_too_cold_is_all_alike_and_too_hot_is_all_wrong(first: int) -> None:
    found = groups_at(settings_of("temperature").replace({"seed": first}), TEMPERATURES)
    at = {temperature: n for n, temperature in enumerate(TEMPERATURES)}
    assert np.all(np.diff(found["reward"]) <= 0.01), "the colder, the better the marks"
    assert found["distinct"][at[0.25]] < 1.05 < 7 < found["distinct"][at[4.0]]
    assert found["live"][at[0.25]] < 0.01
    assert found["live"][at[1.0]] > 0.95
    assert found["live"][at[4.0]] < 0.5
    assert 0.5 < TEMPERATURES[int(found["live"].argmax())] < 2


@pytest.mark.parametrize("first", FIRST)
def test_only_at_the_temperature_of_sampling_is_the_first_ratio_1(first: int) -> None:
    for sampled in (0.5, 1.0, 2.0):
        settings = settings_of("temperature").replace({"seed": first, "learner.temperature": sampled})
        found = first_pass(settings, TEMPERATURES)
        here = TEMPERATURES.index(sampled)
        assert (found["praised"][here], found["punished"][here], found["clipped"][here]) == (1.0, 1.0, 0.0)
        assert np.all(np.diff(found["praised"]) <= 1e-12), (
            "praised answers are the likely ones: hotter makes them less so"
        )
        assert np.all(np.diff(found["punished"]) >= -1e-12)
        assert np.all(found["clipped"][here:] == 0)
        for other in {0.5, 1.0, 2.0} - {sampled}:
            p, q = chances(settings, sampled), chances(settings, other)
            place = TEMPERATURES.index(other)
            assert found["praised"][place] == pytest.approx(q[RIGHT] / p[RIGHT])
            assert found["punished"][place] == pytest.approx(q[0] / p[0])
    trap = settings_of("temperature", 7).replace({"seed": first})
    assert first_pass(trap, [1.0])["clipped"][0] == 1.0, "every push is stopped"


@pytest.mark.parametrize("seed", [0, 1])
def test_a_language_model_has_its_signal_in_between(seed: int) -> None:
    """32 groups: the standard deviation of a share is at most 0.09, and the gaps are at least three times that."""
    found = {}
    for temperature in (0.1, 2.0, 5.0):
        settings = language_at(temperature).replace({"seed": seed})
        found[temperature] = groups_of(next(iter(learner(settings))))
    (cold, middle, hot) = found.values()
    assert cold[0] < 2 < middle[0] < 6 < hot[0]
    assert cold[1] + 0.27 < middle[1] > hot[1] + 0.27
    assert hot[2] < cold[2] < middle[2] + 0.1


def test_answers_are_distinct_by_every_token_and_by_length() -> None:
    group = np.array([[1, 2, -1], [1, 2, 0], [1, 2, -1], [2, -1, -1]])
    assert distinct(group[None]).tolist() == [3]
    assert distinct(np.zeros((2, 3, 5, 1), dtype=int)).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_dragging_moves_the_point_and_leaves_the_curve(pupil: Pupil) -> None:
    picture = pupil.opened("temperature", Temperature, step=4)
    plots = picture.plots["groups"]
    curve, before = plots[LIVE,].picture.lines[0].y, picture.answer("live")
    pupil.lesson_player.turn({"learner.temperature": 2.0})
    pupil.driver.qtbot.waitUntil(lambda: picture.answer("live") != before)
    pupil.wait()
    assert plots[LIVE,].picture.lines[0].y is curve
    place = TEMPERATURES.index(2.0)
    for part, check in ((DISTINCT, "distinct"), (LIVE, "live"), (REWARD, "reward")):
        assert picture.answer(check) == pytest.approx(plots[part,].lines[part.name].y[place])
        (x,), (y,) = plots[part,].picture.points[0].x, plots[part,].picture.points[0].y
        assert (x, y) == pytest.approx((math.log10(2.0), picture.answer(check)))
        assert len(plots[part,].table()[1]) == len(TEMPERATURES)
    assert picture.summary(pupil.driver.program.workspace.view).startswith("T = 2: ")


@pytest.mark.long
def test_leaving_while_the_model_is_sampled_gives_it_up(pupil: Pupil) -> None:
    pupil.open("temperature")
    pupil.walk_to(5)
    picture = pupil.shown(Temperature)
    pupil.lesson_player.skip()
    pupil.driver.qtbot.waitUntil(lambda: "temperatures done" in pupil.page.bar.note.text())
    assert not picture.ready
    assert math.isnan(picture.answer("language_best"))
    pupil.lesson_player.leave()
    pupil.driver.settle()
    assert not picture.runner.busy
    assert pupil.lesson_player.lesson is None
    threads = [thread for thread in threading.enumerate() if thread.name == "experiment"]
    pupil.driver.qtbot.waitUntil(lambda: not any(thread.is_alive() for thread in threads))


@pytest.mark.long
def test_without_torch_the_model_is_sampled_all_the_same(without_torch: Path, pupil: Pupil) -> None:
    pupil.open("temperature")
    pupil.walk_to(5)
    placed = pupil.predict(1)
    assert placed.value is not None and not math.isnan(placed.value)
    pupil.walk_to(7)
    assert pupil.predict(1.0).right


def test_a_baseline_of_the_critic_is_refused_and_the_models_temperatures_are_among_the_toys() -> None:
    with pytest.raises(SettingsError):
        first_pass(Settings().replace({"objective.baseline": "given", "learner.critic": True}), [1.0])
    assert len(LANGUAGE_TEMPERATURES) == len(set(LANGUAGE_TEMPERATURES) & set(TEMPERATURES))


RUNS = range(32)


def norms(chance: float, first: int = 0, std: str = "sample") -> np.ndarray:
    """Return the gradient norm of the first update for every seed, with the settings of the lesson."""
    settings = settings_of("difficulty").replace({"task.bias": -bias_of(chance), "objective.std": std})
    done = next(updates(settings, range(first, first + len(RUNS))))
    return np.sqrt((done.gradient[0] ** 2).sum(axis=(1, 2)))


def error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


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
    plain, again = (next(updates(settings.replace({"learner.resample_dead": on}), RUNS)) for on in (False, True))
    dead = [equal_rewards(x.batch.rewards.reshape(len(RUNS), PROMPTS, SIZE)).mean() for x in (plain, again)]
    expected = dead_share(0.1, SIZE)
    spread = math.sqrt(expected * (1 - expected) / (len(RUNS) * PROMPTS))
    assert dead[0] == pytest.approx(expected, abs=4 * spread)
    assert dead[1] < 0.01
    alive = (0.1 - 0.1**SIZE) / (1 - expected)  # mean reward of a group that has both
    spread = 0.15 / math.sqrt(len(RUNS) * PROMPTS)  # such a group's mean reward strays by less
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
