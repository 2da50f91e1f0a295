"""L25: samples of an older policy. The lesson's statements are checked over seeds."""

from __future__ import annotations

import numpy as np
import pytest

from app.teaching.lessons.interactives.stale_samples import StaleSamples
from grpo_core.bandit.learner import BanditLearner
from grpo_core.experiments.ensemble import ensembles
from grpo_core.objective import importance_weight
from grpo_core.teaching.lessons.experiments.stale_samples import AGES, CAP, UPDATES, planned, wrong
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import known, lesson_of, settings_of

pytestmark = pytest.mark.one_window
GUESSES = {2: 1, 3: 0.9, 4: 1, 5: 0.36, 6: 2}
FIRSTS = (1000, *(pytest.param(first, marks=pytest.mark.long) for first in range(2000, 12000, 1000)))


@pytest.mark.parametrize("first", FIRSTS)
def test_what_it_says_holds(first: int) -> None:
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
    pupil.open("stale_samples")
    picture = pupil.picture
    assert isinstance(picture, StaleSamples)
    step = pupil.driver.program.workspace.view.run.step(12)
    assert step is not None and step.sampling_logp is not None
    sampler = picture.policies.picture.series[1].heights
    np.testing.assert_allclose(np.exp(step.sampling_logp[:, 0]), sampler[step.tokens[:, 0]])
    pupil.next()
    pupil.predict(GUESSES[2])
    plain, weighted = picture.wrong.picture.series[0].heights, picture.runs(True)
    assert np.isfinite(plain).tolist() == [age <= 4 for age in AGES] and not weighted


@pytest.mark.long
def test_who_knows_the_answers_is_right_at_every_step(pupil: Pupil) -> None:
    known(pupil, "stale_samples", GUESSES)
