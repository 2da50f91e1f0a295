"""Lesson 10: ratios changed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app.teaching.lessons.interactives.by_hand import RATIO_SHOWS, RatioExplorer
from grpo_core.bandit.simulate import updates
from grpo_core.bandit.tabular_policy import log_probs
from grpo_core.config import Settings
from grpo_core.teaching.lessons import LessonStep
from grpo_core.teaching.lessons.experiments.by_hand import Ratios, with_probability
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window

Key = Qt.Key


def test_what_the_lesson_says_holds_over_seeds() -> None:
    settings = Settings().replace({"optimizer.learning_rate": 0.1, "objective.beta": 0.0})
    seeds = tuple(range(16))
    for number, update in enumerate(updates(settings, seeds), start=1):
        if number in (20, 400):
            for old in log_probs(update.state.logits, 1.0)[:, 0]:
                for action, prob in ((4, 0.4), (6, 1.0), (0, 0.0)):
                    moved = with_probability(old, action, prob)
                    found = {k: v() for k, v in Ratios(settings.objective, old, moved, action, 0.01).answers().items()}
                    assert found["mean_ratio"] == pytest.approx(1, abs=1e-12)
                    assert found["others_spread"] < 1e-9 * found["others_ratio"]
                    assert found["rare_over_likely"] > 1
                    if number == 400:
                        assert found["alone_outside"] == 9, "all but the likeliest"
                        assert found["alone_largest"] > 30
                    assert found["likeliest_limit"] == pytest.approx(1 / np.exp(old.max()), rel=2e-4)
        if number == 400:
            break


def test_dragging_by_keyboard_moves_every_ratio_and_reset_brings_them_back(pupil: Pupil) -> None:
    pupil.open("ratios")
    pupil.walk_to(2)
    pupil.press(Key.Key_S)
    explorer = pupil.picture
    assert isinstance(explorer, RatioExplorer)
    assert explorer.ratios_now is not None
    before, old = explorer.ratios_now.logp, explorer.ratios_now.old_logp
    assert np.exp(before[4]) == pytest.approx(0.4)
    own = pupil.driver.program.workspace.view.step.now
    assert own is not None
    assert np.exp(old) == pytest.approx(own[0]), "the run's own policy"
    explorer.policy.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_1)
    for _ in range(3):
        pupil.press(Key.Key_Up)
    assert explorer.ratios_now is not None
    assert np.exp(explorer.ratios_now.logp[0]) == pytest.approx(np.exp(before[0]) + 0.03)
    assert explorer.ratios_now.ratio == pytest.approx(np.exp(explorer.ratios_now.logp - old))
    assert explorer.ratios.picture.series[0].values is explorer.ratios_now.ratio
    columns, rows = explorer.ratios.table()
    assert [row[1] for row in rows] == pytest.approx(explorer.ratios_now.ratio.tolist())
    assert len(columns) == 2
    pupil.lesson_player.reset()
    pupil.wait()
    assert explorer.ratios_now.logp == pytest.approx(before)


def test_odd_states_and_a_run_without_a_policy_are_survived(pupil: Pupil) -> None:
    workspace = pupil.driver.program.workspace
    explorer = RatioExplorer(workspace)
    pupil.driver.qtbot.addWidget(explorer)
    assert np.isnan(explorer.answer("mean_ratio"))
    odd: tuple[dict[str, object], ...] = (
        {},
        {"action": 99, "probability": 5.0},
        {"action": 0, "probability": -1},
        {"gain": 2.0},
    )
    for state in odd:
        for show in RATIO_SHOWS:
            explorer.show_step(LessonStep(text="", show=show, state=state))
            explorer.draw(workspace.view)
            assert explorer.answer("mean_ratio") == pytest.approx(1)
            assert explorer.summary(workspace.view)
