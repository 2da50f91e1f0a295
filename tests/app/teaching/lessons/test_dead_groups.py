"""L5 by keyboard: the probability of a right answer is dragged, and groups die at both ends."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.chances import DeadGroups
from grpo_core.teaching.lessons.theory import dead_share
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window


@pytest.fixture
def groups(pupil: Pupil) -> DeadGroups:
    pupil.open("same_rewards")
    assert isinstance(pupil.picture, DeadGroups)
    return pupil.picture


def test_keys_drag_the_chance_and_the_count_follows(pupil: Pupil, groups: DeadGroups) -> None:
    assert groups.slider.value() == 80
    groups.slider.setFocus()
    shares = {}
    for key, chance in ((Qt.Key.Key_Home, 0.0), (Qt.Key.Key_End, 1.0)):
        QTest.keyClick(groups.slider, key)
        pupil.wait()
        shares[chance] = groups.answer("dead")
    assert shares == {0.0: 1.0, 1.0: 1.0}
    for _ in range(50):
        QTest.keyClick(groups.slider, Qt.Key.Key_Left)  # the slider's, as long as it has the focus
    pupil.wait()
    assert groups.slider.value() == 50
    assert groups.answer("dead") < 0.02
    assert groups.answer("expected") == pytest.approx(dead_share(0.5, 8))
    assert "p = 0.50, G = 8" in groups.note.text()
    pupil.press(Qt.Key.Key_S)  # nothing to skip here
    assert pupil.lesson_player.place == 0


def test_the_tiles_are_the_lessons_own_first_update_until_something_is_dragged(
    pupil: Pupil, groups: DeadGroups
) -> None:
    drawn = pupil.driver.program.workspace.view.step
    assert drawn.dead is not None
    assert f"{int(drawn.dead.sum())} of these 64 groups" in groups.note.text()


def test_the_group_size_is_a_knob_and_makes_the_run_again(pupil: Pupil, groups: DeadGroups) -> None:
    pupil.walk_to(6)
    pupil.press(Qt.Key.Key_S)
    before = groups.answer("dead")
    row = pupil.page.knobs.rows["learner.group_size"]
    row.edited.emit(row.paths, 16, None)
    pupil.driver.qtbot.waitUntil(lambda: groups.settings.learner.group_size == 16)
    pupil.wait()
    assert groups.answer("dead") < before
    assert pupil.driver.program.workspace.view.step.settings.learner.group_size == 16
