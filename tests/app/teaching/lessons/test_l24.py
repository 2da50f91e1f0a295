"""L24: pass@1 against pass@64. The lesson's statements are checked over seeds, and pass@k against sampled attempts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from app.teaching.lessons.interactives.over_training import ATTEMPTS, LOST, MANY, PassAtK
from grpo_core.bandit.learner import BanditLearner
from grpo_core.progress import unpolled
from grpo_core.teaching.lessons.theory import pass_at
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import DOWN, known, settings_of

pytestmark = pytest.mark.one_window
RIGHT = 6
GUESSES = {2: 0.83, 3: DOWN, 4: 2, 5: 1, 6: 2}
SEEDS = (3, 20, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(21, 33)))


@cache
def chances(step: int, seed: int) -> np.ndarray:
    """Return (P,) the probability of the right answer after a hundred updates with the settings of a step."""
    run = BanditLearner(settings_of("widen_or_narrow", step).replace({"seed": seed}), resume=None, poll=unpolled)
    last = [next(run) for _ in range(100)][-1]
    assert last.dist_logp is not None
    return np.exp(last.dist_logp[-1][:, RIGHT])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_it_says_holds(seed: int) -> None:
    start = np.full(64, 1 / (19 + np.exp(2.9)))
    assert 0.026 < pass_at(start, 1) < 0.028 and 0.75 < pass_at(start, MANY) < 0.9
    plain, held, large = (chances(step, seed) for step in (1, 5, 6))
    assert pass_at(plain, 1) > 0.45 and -0.35 < pass_at(plain, MANY) - pass_at(start, MANY) < -0.08
    assert 15 <= (plain < LOST).sum() <= 36
    crossed = next(k for k in range(1, 200) if pass_at(start, k) > pass_at(plain, k))
    assert 20 < crossed < 55, "the curves cross"
    assert max(0.7, pass_at(plain, MANY)) < pass_at(held, MANY) < 0.92 and pass_at(held, 1) > pass_at(plain, 1)
    assert pass_at(large, MANY) > 0.96
    drawn = [1 - (1 - start[0]) ** group for group in (8, 32)]
    assert 0.15 < drawn[0] < 0.25 and drawn[1] > 0.5


@pytest.mark.parametrize("k", ATTEMPTS)
def test_pass_at_k_is_the_share_of_prompts_with_a_right_attempt(k: int) -> None:
    numbers, some = np.random.default_rng(k), np.array([0.0, 1e-4, 0.03, 0.5, 1.0])
    drawn = (numbers.random((4000, 5, k)) < some[:, None]).any(axis=-1).mean()
    assert pass_at(some, k) == pytest.approx(drawn, abs=0.01)
    assert pass_at(np.array([1e-18]), k) == pytest.approx(k * 1e-18), "small chances are not rounded away"


def test_its_pictures_show_both_policies(pupil: Pupil) -> None:
    pupil.open("widen_or_narrow")
    picture = pupil.picture
    assert isinstance(picture, PassAtK)
    assert [line.name for line in picture.training.picture.lines] == ["1"], "pass@64 is asked for"
    assert [line.name for line in picture.attempts.picture.lines] == ["now", "before"]


@pytest.mark.long
def test_who_knows_the_answers_is_right_at_every_step(pupil: Pupil) -> None:
    known(pupil, "widen_or_narrow", GUESSES)


def test_once_it_is_answered_the_curve_goes_on_to_256_attempts(pupil: Pupil) -> None:
    pupil.open("widen_or_narrow")
    picture = pupil.picture
    assert isinstance(picture, PassAtK)
    assert {len(line.x) for line in picture.attempts.picture.lines} == {4}, "up to eight attempts"
    pupil.next()
    pupil.predict(GUESSES[2])
    assert {len(line.x) for line in picture.attempts.picture.lines} == {len(ATTEMPTS)}
    assert [line.name for line in picture.training.picture.lines] == ["1", "64"]
    pupil.walk_to(4)
    pupil.predict(GUESSES[4])
    assert {len(line.x) for line in picture.attempts.picture.lines} == {len(ATTEMPTS)}
    assert "pass@64" in picture.note.text()
