"""The screen shows what repainting the entire window would show: nothing outdated is left anywhere.

Pictures rendered by a widget cannot reveal this, because rendering repaints them.
"""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage

from tests.app.conftest import Driver
from tests.app.teaching.lessons.hands import Pupil

APART = 40
"""Difference in a colour channel, of 255, at which a pixel counts as changed. Glyph smoothing varies a little."""


def pixels(image: QImage) -> np.ndarray:
    """Return colours (height, width, 3)."""
    made = image.convertToFormat(QImage.Format.Format_RGB32)
    held = np.frombuffer(made.constBits(), np.uint8).reshape(made.height(), made.bytesPerLine() // 4, 4)
    return held[:, : made.width(), :3].astype(int)


def left_over(driver: Driver) -> tuple[int, ...]:
    """Return the bounding box of everything outdated on the screen, empty if there is nothing."""
    driver.settle()
    driver.settle()
    window = driver.program.window
    shown, meant = window.screen().grabWindow(window.winId()).toImage(), window.grab().toImage()
    assert shown.size() == meant.size()
    ys, xs = np.nonzero(np.abs(pixels(shown) - pixels(meant)).max(axis=-1) > APART)
    return (int(xs.min()), int(ys.min()), int(xs.max()), int(ys.max())) if len(xs) else ()


def test_the_first_updates_leave_nothing_of_the_empty_window(driver: Driver) -> None:
    assert left_over(driver) == ()
    for updates in (1, 1, 10):
        driver.run(updates)
        assert left_over(driver) == (), updates
    driver.program.workspace.select(row=3, token=0)
    driver.program.workspace.move_to(5)
    assert left_over(driver) == ()
    driver.program.player.stage_back()
    assert left_over(driver) == ()


def test_another_layout_and_another_size_leave_nothing_of_the_one_before(driver: Driver) -> None:
    driver.run(3)
    driver.program.window.docks["explain"].raise_()
    driver.program.layouts.choose("Present")
    assert left_over(driver) == ()
    driver.program.look.set("dark", 1.25)
    driver.qtbot.waitUntil(lambda: not driver.program.zooming.busy)
    assert left_over(driver) == ()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "id", ["one_update", "clipping", "kl", "family_tree", "same_rewards", "flight_deck", "temperature"]
)
def test_a_lessons_steps_leave_nothing_of_each_other(driver: Driver, id: str) -> None:
    pupil = Pupil(driver)
    pupil.open(id)
    assert pupil.lesson_player.lesson is not None
    for place in range(len(pupil.lesson_player.lesson.steps)):
        if pupil.lesson_player.covered:
            assert left_over(driver) == (), place
            pupil.lesson_player.skip()
        pupil.wait()
        assert left_over(driver) == (), place
        if place + 1 < len(pupil.lesson_player.lesson.steps):
            pupil.next()
    pupil.lesson_player.leave()
