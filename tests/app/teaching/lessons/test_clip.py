"""L11 by keyboard: passes are dragged; tokens leave ratio 1 and are no longer pushed."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.teaching.lessons.interactives.clip import Clip
from grpo_core import recompute
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window

Key = Qt.Key


@pytest.fixture
def clip(pupil: Pupil) -> Clip:
    pupil.open("clipping")
    pupil.walk_to(5)
    assert isinstance(pupil.picture, Clip)
    return pupil.picture


def test_the_slider_walks_the_passes_of_the_real_update(pupil: Pupil, clip: Clip) -> None:
    assert (clip.slider.value(), clip.slider.maximum()) == (2, 16)
    clip.slider.setFocus()
    seen = []
    for key in (Key.Key_Home, Key.Key_End):
        QTest.keyClick(clip.slider, key)
        pupil.wait()
        seen.append(clip.note.text())
    step = pupil.driver.program.workspace.view.step.step
    assert step is not None
    assert seen[0].startswith("Pass 1 of 16: 0 of 8 tokens are clipped; ratios from 1.00 to 1.00")
    stopped = int(recompute.terms(step, 15).clipped.sum())
    assert seen[1].startswith(f"Pass 16 of 16: {stopped} of 8")
    drawn = [row for plot in clip.sides.values() for row in plot.table()[1]]
    assert sorted(float(str(row[0])) for row in drawn) == pytest.approx(
        np.sort(recompute.terms(step, 15).ratio.ravel())
    )
    assert sum(row[2] == "clip" for row in drawn) == stopped


def test_a_wider_range_lets_ratios_grow_and_the_corners_stay_two(pupil: Pupil, clip: Clip) -> None:
    pupil.walk_to(6)
    before = clip.answer("largest_ratio")
    row = pupil.page.knobs.rows["objective.clip_high"]
    row.edited.emit(row.paths, 1.0, None)
    changed = pupil.driver.program.workspace.editing
    pupil.driver.qtbot.waitUntil(lambda: changed.settings.objective.clip_high == 1.0)
    pupil.wait()
    assert clip.answer("largest_ratio") > before
    assert clip.answer("clipped_corners") == 2
