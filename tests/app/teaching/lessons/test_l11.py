"""L11: the predicted height is dragged in the picture of the policy next to the lesson."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.panel_registry import POLICY_BARS
from app.panels.policy_film import POLICY
from app.teaching.lessons.inputs import Value
from tests.app.geometry import pixel_at
from tests.app.teaching.lessons.hands import Pupil
from tests.app.teaching.lessons.held import lesson_of

WITHOUT_A_CLIP = 6
"""The step that asks for a height, counted from 0."""


def test_the_prediction_is_a_line_across_the_bars_until_the_question_is_left(pupil: Pupil) -> None:
    player, program = pupil.lesson_player, pupil.driver.program
    player.open(lesson_of("clipping"), WITHOUT_A_CLIP)
    pupil.wait()
    chart = program.window.panels.of(POLICY_BARS).plot

    def lane() -> object:
        pupil.driver.settle()
        found = next(lane for lane in chart.picture.lanes if lane.key == POLICY)
        return found.level, found.asks_level

    assert lane() == (None, True)
    assert chart.ranges[POLICY] == (0.0, 1.0), "every answer can be dragged"
    at = pixel_at(chart, 3, 0.4, POLICY).toPoint()
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=at)
    box = pupil.page.prediction.input
    assert isinstance(box, Value)
    assert box.guess == pytest.approx(0.4, abs=0.02)
    assert lane() == (box.guess, True)
    guess = box.guess
    QTest.keyClick(box, Qt.Key.Key_Return)
    pupil.wait()
    assert lane() == (guess, False), "the bars grow past it"
    player.next()
    pupil.wait()
    assert lane() == (None, False)
    player.back()
    pupil.wait()
    assert lane() == (guess, False)
    player.leave()
    assert lane() == (None, False)
