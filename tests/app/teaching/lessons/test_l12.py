"""Lesson 12: KL by hand, with its estimators as values and as gradients."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.by_hand import KL_SHOWS, KlExplorer
from grpo_core.teaching.lessons import LessonStep
from tests.app.geometry import pixel_at
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window

Key = Qt.Key


def test_a_bar_is_moved_by_keyboard_and_everything_follows(pupil: Pupil) -> None:
    pupil.open("kl")
    explorer = pupil.picture
    assert isinstance(explorer, KlExplorer)
    before, apart = np.exp(explorer.divergence.logp), explorer.answer("kl")
    explorer.policy.setFocus(Qt.FocusReason.TabFocusReason)
    pupil.press(Key.Key_3)
    assert explorer.policy.chosen == 2
    for _ in range(5):
        pupil.press(Key.Key_Up)
    after = np.exp(explorer.divergence.logp)
    assert after[2] == pytest.approx(before[2] + 0.05)
    assert np.delete(after, 2) == pytest.approx(np.delete(before, 2) * (1 - after[2]) / (1 - before[2]))
    assert explorer.answer("kl") != apart
    assert f"{explorer.answer('kl'):.3f}" in explorer.numbers.text()
    assert f"{after[2]:.3f}" in explorer.policy.accessibleDescription()
    pupil.press(Key.Key_Right)
    assert pupil.lesson_player.place == 1, "the arrows stay with the lesson"


def test_a_bar_is_dragged_by_mouse(pupil: Pupil) -> None:
    pupil.open("kl")
    explorer = pupil.picture
    assert isinstance(explorer, KlExplorer)
    plot = explorer.reference

    def at(place: int, height: float) -> QPoint:
        return pixel_at(plot, place, height).toPoint()

    QTest.mousePress(plot, Qt.MouseButton.LeftButton, pos=at(4, 0.05))
    for height in (0.3, 0.9, 0.6):
        QTest.mouseMove(plot, at(4, height))
    QTest.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=at(4, 0.6))
    pupil.wait()
    assert np.exp(explorer.divergence.ref_logp[4]) == pytest.approx(0.6, abs=0.02)
    assert plot.chosen == 4


STATES: tuple[dict[str, object], ...] = (
    {},
    {"policy": (0.0, 1.0)},
    {"policy": (0.5, 0.5), "reference": (0.2, 0.3, 0.5)},
    {"policy": ()},
    {"samples": 10**12, "seed": -4},
    {"samples": 0},
    {"policy": (1e-300, 1e300)},
    {"policy": (0.9, 0.1), "reference": (0.1, 0.9)},
)


def test_every_picture_of_any_state_has_a_table_and_a_sentence(pupil: Pupil) -> None:
    workspace = pupil.driver.program.workspace
    explorer = KlExplorer(workspace)
    pupil.driver.qtbot.addWidget(explorer)
    for state in STATES:
        for show in KL_SHOWS[1:]:
            explorer.show_step(LessonStep(text="", show=show, state=state))
            explorer.draw(workspace.view)
            columns, rows = explorer.twins[show].plot.table()
            assert len(rows) > 1
            assert all(len(row) == len(columns) for row in rows)
            assert explorer.summary(workspace.view)
            explorer.twins[show].toggle()
    explorer.show_step(LessonStep(text="", show="gradients", state={"parts": ("k1",)}))
    explorer.draw(workspace.view)
    low, high = explorer.gradients.drag_axes().y
    assert explorer.answer("pull_k1") < 1e-14
    assert high - low >= 0.1, "rounding does not fill the axis"
