"""L4 by keyboard: rewards are dragged, and advantages follow from the trainer's own function."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.advantages import BuildGroup
from grpo_core.advantages import advantages
from grpo_core.config import Objective
from tests.app.geometry import pixel_at
from tests.app.stories.hands import drag
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window

Key = Qt.Key


@pytest.fixture
def group(pupil: Pupil) -> BuildGroup:
    pupil.open("build_group")
    assert isinstance(pupil.picture, BuildGroup)
    return pupil.picture


def test_keys_and_mouse_move_a_reward_and_every_advantage_with_it(pupil: Pupil, group: BuildGroup) -> None:
    before, rewards = group.now, group.rewards
    group.above.setFocus()
    QTest.keyClick(group.above, Key.Key_3)
    QTest.keyClick(group.above, Key.Key_Up)
    pupil.wait()
    assert np.flatnonzero(group.rewards != rewards).tolist() == [2]
    assert np.all(group.now != before)
    assert group.now == pytest.approx(advantages(Objective(beta=0.0), group.rewards[None])[0])
    pupil.press(Key.Key_Right)
    assert pupil.lesson_player.place == 1, "arrows to the side walk on, wherever the focus is"
    pupil.press(Key.Key_S)
    pupil.press(Key.Key_Left)
    assert group.rewards.tolist() == rewards.tolist(), "another step is another group"
    start, end = (pixel_at(group.above, 1, height).toPoint() for height in (0.9, 0.3))
    drag(group.above, start, end)
    pupil.wait()
    assert group.rewards[1] == pytest.approx(0.3, abs=0.05)


def test_knobs_change_what_is_divided_by_and_reset_brings_all_back(pupil: Pupil, group: BuildGroup) -> None:
    pupil.walk_to(9)
    before = group.now
    pupil.lesson_player.turn({"objective.std": "none"})
    pupil.driver.qtbot.waitUntil(lambda: pupil.driver.program.workspace.editing.settings.objective.std == "none")
    pupil.wait()
    assert group.now[-1] == pytest.approx(7 / 8)
    pupil.page.knobs.back.click()
    pupil.wait()
    assert group.now == pytest.approx(before)
    row = pupil.page.knobs.rows["objective.baseline"]
    row.edited.emit(row.paths, "given", None)
    pupil.driver.settle()
    assert "critic" in row.error.text(), "what cannot be is said beside the knob"
    assert group.now == pytest.approx(before)


def test_a_ghost_bar_is_placed_by_keys_and_the_run_stands_beside_it(pupil: Pupil, group: BuildGroup) -> None:
    pupil.next()
    box = pupil.page.prediction.input
    assert box is not None
    for _ in range(6):
        QTest.keyClick(box, Key.Key_Up)
    assert box.guess == pytest.approx(2.48)  # from the middle, six fiftieths up
    assert group.rewards.tolist() != [0, 0, 0, 0, 0, 0, 0, 1], "the answer is not to be seen yet"
    pupil.press(Key.Key_Return)
    placed = pupil.lesson_player.placed[1]
    assert placed.right
    assert placed.value == pytest.approx(group.now[-1])
    assert pupil.page.prediction.result.text().startswith("Right.")
    assert group.rewards.tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
