"""What a screen reader hears of the pictures of lessons."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible

from tests.app.lessons.hands import Pupil
from tests.app.lessons.held import lesson_of

SLIDERS = {
    "same_rewards": "80 %", "difficulty": "50 %", "beta_sweep": "0.5", "clipping": "1 of 1",
}  # fmt: skip
"""Lesson -> what the slider below its picture says at first."""


@pytest.mark.parametrize("lesson", SLIDERS)
def test_the_slider_below_a_lessons_picture_says_a_value(pupil: Pupil, lesson: str) -> None:
    pupil.driver.program.lessons.player.open(lesson_of(lesson))
    pupil.wait()
    interface = QAccessible.queryAccessibleInterface(pupil.picture.slider)  # type: ignore[attr-defined]
    assert interface.text(QAccessible.Text.Value) == SLIDERS[lesson]
