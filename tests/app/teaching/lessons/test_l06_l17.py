"""Lessons 6 and 17: group sizes and algorithms are compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.teaching.lessons.catalogue import lessons
from app.teaching.lessons.interactives.fair_race import FairRace
from app.teaching.lessons.interactives.group_size import PARTS, SMALL, GroupSize
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.race import race
from grpo_core.teaching.lessons.experiments.group_sizes import SIZES, last_rewards, left_by_own_mean, planned, silent
from tests.app.painted import heights_of
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window

Key = Qt.Key
LESSON = next(lesson for lesson in lessons()[0] if lesson.id == "group_size")
ENDS = (SIZES[0], SIZES[-1])


def ends(settings: Settings, kind: str, seeds: range) -> dict[int, Ensemble]:
    return tried(settings, kind, seeds, ENDS)


def tried(settings: Settings, kind: str, seeds: range, sizes: Sequence[int]) -> dict[int, Ensemble]:
    plans = {size: planned(settings, kind, size) for size in sizes}
    return {size: next(ensembles([own], seeds, updates)) for size, (own, updates) in plans.items()}


@pytest.mark.parametrize("first", [1000, 2000, 3000])
def test_the_better_size_depends_on_what_is_equal(first: int) -> None:
    """Differences between means of 32 seeds each, compared with five of their standard errors."""
    seeds = range(first, first + 32)
    signs = {"updates": 1, "samples": -1, "scaled": 1}
    for kind, sign in signs.items():
        small, large = (last_rewards(runs) for runs in ends(LESSON.start, kind, seeds).values())
        error = np.sqrt(small.var(ddof=1) / len(small) + large.var(ddof=1) / len(large))
        assert sign * (large.mean() - small.mean()) > 5 * error, kind


@pytest.mark.parametrize("first", [1000, 2000, 3000])
def test_without_bias_and_at_a_rate_in_proportion_only_samples_count(first: int) -> None:
    settings = LESSON.settings_of(LESSON.steps[-1])
    small, large = (last_rewards(runs) for runs in ends(settings, "scaled", range(first, first + 64)).values())
    assert abs(large.mean() - small.mean()) < 0.03
    assert min(small.mean(), large.mean()) > 0.8, "otherwise both just learned nothing"


def test_small_groups_are_silent_as_often_as_chance_says() -> None:
    """All wrong or all right: 0.9^G + 0.1^G of the runs, within five standard errors of 256 seeds."""
    for size, runs in tried(LESSON.start, "samples", range(256), (8, 16, 32, 64)).items():
        chance = 0.9**size + 0.1**size
        assert silent(runs) == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / 256) + 1e-9)


def test_the_own_mean_leaves_that_share_of_the_step() -> None:
    assert left_by_own_mean(SMALL) == pytest.approx([(g - 1) / g for g in SMALL])


def test_leaving_while_it_computes_stops_it_and_other_settings_begin_again(pupil: Pupil) -> None:
    picture = pupil.opened("group_size", GroupSize)
    assert set(picture.runs("updates")) == set(SIZES)
    assert picture.answer("silent_64") < picture.answer("silent_2")
    pupil.walk_to(2)
    pupil.press(Key.Key_S)
    before = picture.runs("updates")
    assert picture.ready
    assert "40 updates: " in picture.note.text()
    pupil.lesson_player.turn({"optimizer.learning_rate": 0.1})
    pupil.driver.qtbot.waitUntil(lambda: not picture.ready)
    assert np.isnan(picture.answer("samples_gain"))
    pupil.driver.qtbot.waitUntil(lambda: "sizes done" in pupil.page.bar.note.text() or picture.ready)
    pupil.wait()
    assert picture.runs("updates")[2] is not before[2]
    pupil.lesson_player.turn({"optimizer.learning_rate": 0.2})
    pupil.press(Key.Key_Escape)
    assert pupil.lesson_player.lesson is None
    assert not picture.runner.busy


def test_the_budget_is_switched_by_keyboard(pupil: Pupil) -> None:
    picture = pupil.opened("group_size", GroupSize, step=3)
    assert [kind for kind, button in picture.buttons.items() if button.isVisible()] == ["updates", "samples"]
    plot = picture.plots["reward"]
    for kind, other in (("updates", "samples"), ("samples", "updates")):
        picture.buttons[kind].setFocus(Qt.FocusReason.TabFocusReason)
        pupil.press(Key.Key_Space)
        hidden, there = PARTS[kind].name, PARTS[other].name
        assert np.isnan(heights_of(plot)[hidden]).all()
        medians = [np.median(last_rewards(picture.runs(other)[size])) for size in SIZES]
        assert heights_of(plot)[there] == pytest.approx(medians)
        pupil.press(Key.Key_Space)
        assert not np.isnan(heights_of(plot)[hidden]).any()


def test_the_race_is_the_cores_own_and_a_knob_runs_it_again(pupil: Pupil) -> None:
    shown = pupil.opened("fair_race", FairRace)
    plan = shown.plan
    expected = dict(race(plan.settings, plan.names, updates=50))
    for name, runs in shown.results_of(plan).lanes.items():
        assert np.array_equal(runs.measures["best_prob"], expected[name].measures["best_prob"])
    assert shown.answer("grpo") == pytest.approx(expected[plan.names[0]].measures["best_prob"][-1].mean())
    pupil.walk_to(7)
    pupil.press(Key.Key_S)
    level = shown.answer("behind_critic")
    pupil.turn("learner.critic_rate", 0.01)
    assert shown.answer("behind_critic") > level + 0.1, "a critic that learns slowly falls behind"
