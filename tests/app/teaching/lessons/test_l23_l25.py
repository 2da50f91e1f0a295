"""L23 to L25: an agent's tokens and its tool's, pass@1 against pass@64, and samples of an older policy. The lessons'
statements are checked seed by seed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from app.teaching.lessons.interactives.over_training import ATTEMPTS, LOST, MANY, PassAtK
from app.teaching.lessons.interactives.sampled_answers import WhoseWords, marked, right_end, tool_logp, tool_share
from app.teaching.lessons.interactives.stale_samples import AGES, CAP, UPDATES, StaleSamples, planned, wrong
from grpo_core.bandit.learner import BanditLearner
from grpo_core.experiments.ensemble import ensembles
from grpo_core.lm.learner import LanguageLearner
from grpo_core.objective import importance_weight
from grpo_core.progress import unpolled
from grpo_core.record import Step
from grpo_core.teaching.lessons.theory import pass_at
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of, settings_of

pytestmark = pytest.mark.one_window


@cache
def trained(seed: int, masked: bool, updates: int = 30) -> tuple[Step, ...]:
    """Return the updates of the lesson's run."""
    settings = settings_of("whose_words").replace({"seed": seed, "task.mask_tool": masked})
    run = LanguageLearner(settings)
    return tuple(next(run) for _ in range(updates))


def shares(steps: tuple[Step, ...]) -> np.ndarray:
    return np.array([step.reward_parts[:, 0].mean() for step in steps if step.reward_parts is not None])


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 32))])
def test_what_l23_says_of_the_two_runs_holds(seed: int) -> None:
    with_mask, without = (trained(seed, masked) for masked in (True, False))
    assert np.array_equal(with_mask[0].tokens, without[0].tokens), "the first batch is the same"
    assert right_end(shares(with_mask)) > 0.8 > 0.72 > right_end(shares(without)) > 0.4
    assert np.exp(tool_logp(without[0])) < 1e-3
    assert 2.0 < tool_logp(without[-1]) - tool_logp(without[0]) < 6.0
    assert tool_logp(with_mask[-1]) - tool_logp(with_mask[0]) < 2.0, "what is masked is hardly learned"


def test_the_tools_words_are_marked_and_counted() -> None:
    step = trained(5, True, 1)[0]
    assert marked("(47*8)376 (376+56)432 432") == "(47*8)‹376›(376+56)‹432›432" and marked("12") == "12"
    assert step.present is not None
    assert tool_share(step) == 1 - step.mask.sum() / step.present.sum() > 0.1


def test_its_pictures_say_what_is_in_the_loss(pupil: Pupil) -> None:
    picture, view = pupil.opened("whose_words", WhoseWords), pupil.driver.program.workspace.view
    assert "which the loss leaves out" in picture.note.text()
    assert any("‹" in str(row[2]) for row in picture.rows(view.step.step, view.run.origin))


@pytest.mark.long
def test_at_its_end_both_runs_stand_beside_each_other(pupil: Pupil) -> None:
    assert len(pupil.opened("whose_words", WhoseWords, step=6).curve.picture.lines) == 2


RIGHT = 6
SEEDS = (3, 20, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(21, 33)))


@cache
def chances(step: int, seed: int) -> np.ndarray:
    """Return (P,) the probability of the right answer after a hundred updates with the settings of a step."""
    run = BanditLearner(settings_of("widen_or_narrow", step).replace({"seed": seed}), resume=None, poll=unpolled)
    last = [next(run) for _ in range(100)][-1]
    assert last.dist_logp is not None
    return np.exp(last.dist_logp[-1][:, RIGHT])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_l24_says_holds(seed: int) -> None:
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
    picture = pupil.opened("widen_or_narrow", PassAtK)
    assert [line.name for line in picture.training.picture.lines] == ["1"], "pass@64 is asked for"
    assert [line.name for line in picture.attempts.picture.lines] == ["now", "before"]


def test_once_it_is_answered_the_curve_goes_on_to_256_attempts(pupil: Pupil) -> None:
    picture = pupil.opened("widen_or_narrow", PassAtK)
    assert {len(line.x) for line in picture.attempts.picture.lines} == {4}, "up to eight attempts"
    pupil.next()
    pupil.predict(0.83)
    assert {len(line.x) for line in picture.attempts.picture.lines} == {len(ATTEMPTS)}
    assert [line.name for line in picture.training.picture.lines] == ["1", "64"]
    pupil.walk_to(4)
    pupil.predict(2)
    assert {len(line.x) for line in picture.attempts.picture.lines} == {len(ATTEMPTS)}
    assert "pass@64" in picture.note.text()


FIRSTS = (1000, *(pytest.param(first, marks=pytest.mark.long) for first in range(2000, 12000, 1000)))


@pytest.mark.parametrize("first", FIRSTS)
def test_what_l25_says_holds(first: int) -> None:
    start, end = settings_of("stale_samples"), settings_of("stale_samples", len(lesson_of("stale_samples").steps))
    seeds = range(first, first + 512)
    plain, weighted, held = (
        {age: wrong(next(ensembles([planned(settings, age, weighted=weights)], seeds, UPDATES))) for age in AGES}
        for settings, weights in ((start, False), (start, True), (end, False))
    )
    assert 0.22 < plain[0] < 0.4 and 0.24 < plain[4] < 0.46 and plain[4] < plain[8] < plain[16]
    assert plain[2] - plain[0] < 0.1 and plain[16] > 0.8
    assert 0.28 < weighted[16] < 0.46 and weighted[16] - plain[0] < 0.16
    assert 0.03 < held[0] < 0.16 and held[16] < min(0.04, held[0])


@pytest.mark.parametrize("seed", range(4, 12))
def test_an_unpaid_answer_is_hardly_worth_anything_any_more(seed: int) -> None:
    settings = settings_of("stale_samples").replace({"seed": seed})
    run = BanditLearner(settings, resume=None)
    steps = [next(run) for _ in range(12)]
    now, then = (step.dist_logp[0][0] for step in (steps[11], steps[3]) if step.dist_logp is not None)
    assert 0.18 < np.exp(then[:8]).sum() < 0.32 and np.exp(now[:8]).sum() < 0.03
    weight = importance_weight(CAP, now[None], then[None], None)[0]
    assert (weight[:8] < 0.125).all() and weight[8] == CAP, "what it gives more often counts in full"


def test_its_pictures_show_the_policy_that_sampled_and_the_runs_of_every_age(pupil: Pupil) -> None:
    picture = pupil.opened("stale_samples", StaleSamples)
    step = pupil.driver.program.workspace.view.run.step(12)
    assert step is not None and step.sampling_logp is not None
    sampler = picture.policies.picture.series[1].heights
    np.testing.assert_allclose(np.exp(step.sampling_logp[:, 0]), sampler[step.tokens[:, 0]])
    pupil.next()
    pupil.predict(1)
    plain, weighted = picture.wrong.picture.series[0].heights, picture.runs(True)
    assert np.isfinite(plain).tolist() == [age <= 4 for age in AGES] and not weighted
