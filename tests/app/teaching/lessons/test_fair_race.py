"""L17: the lesson's race is the core's, with the same seeds."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.teaching.lessons.interactives.fair_race import FairRace
from grpo_core.experiments.race import race
from tests.app.teaching.lessons.hands import Pupil


def test_the_race_is_the_cores_own_and_a_knob_runs_it_again(pupil: Pupil) -> None:
    pupil.open("fair_race")
    shown = pupil.picture
    assert isinstance(shown, FairRace)
    plan = shown.plan
    expected = dict(race(plan.settings, plan.names, updates=50))
    for name, runs in shown.results_of(plan).lanes.items():
        assert np.array_equal(runs.measures["best_prob"], expected[name].measures["best_prob"])
    assert shown.answer("grpo") == pytest.approx(expected[plan.names[0]].measures["best_prob"][-1].mean())
    pupil.walk_to(7)
    pupil.press(Qt.Key.Key_S)
    level = shown.answer("behind_critic")
    row = pupil.page.knobs.rows["learner.critic_rate"]
    row.edited.emit(row.paths, 0.01, None)
    wanted = pupil.driver.program.workspace.editing
    pupil.driver.qtbot.waitUntil(lambda: wanted.settings.learner.critic_rate == 0.01)
    pupil.wait()
    assert shown.answer("behind_critic") > level + 0.1, "a critic that learns slowly falls behind"
