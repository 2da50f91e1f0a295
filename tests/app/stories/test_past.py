"""Going back in the run: the timeline, events, branches."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.panels.timeline import next_event
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


def test_the_timeline_scrubs(driver: Driver) -> None:
    driver.run(20)
    track = driver.program.window.panels["timeline"].track  # type: ignore[attr-defined]
    QTest.mouseClick(track, Qt.MouseButton.LeftButton, pos=QPoint(track.width() // 2, track.height() // 2))
    assert driver.program.workspace.cursor.step == 10
    assert not driver.program.workspace.following
    driver.settle()
    assert driver.program.workspace.view.step.number == 10
    QTest.keyClick(track, Qt.Key.Key_Right)
    assert driver.program.workspace.cursor.step == 11
    driver.program.actions["go_end"].trigger()
    assert driver.program.workspace.following


def test_the_next_event_is_a_real_one(driver: Driver) -> None:
    driver.run(60)
    driver.program.workspace.move_to(0)
    driver.settle()
    run = driver.program.workspace.run
    assert run is not None
    event = next_event(run, 0)
    assert event is not None
    driver.program.actions["next_event"].trigger()
    assert driver.program.workspace.cursor.step == event[0]


def test_a_branch_with_the_same_settings_repeats_its_parent_bit_for_bit(driver: Driver) -> None:
    driver.run(12)
    workspace = driver.program.workspace
    parent = workspace.run
    assert parent is not None
    workspace.move_to(5)
    driver.program.actions["branch"].trigger()
    driver.settle()
    child = workspace.run
    assert child is not None
    assert child is not parent
    assert child.head == 5
    driver.run(7)
    for step in range(1, 13):
        mine, theirs = child.step(step), parent.step(step)
        assert mine is not None
        assert theirs is not None
        assert np.array_equal(mine.logp, theirs.logp)


def test_a_branch_with_another_beta_differs_from_there_on(driver: Driver) -> None:
    driver.run(8)
    workspace = driver.program.workspace
    parent = workspace.run
    workspace.move_to(4)
    workspace.editing.edit({"objective.beta": 1.0}, "Change beta")
    driver.program.actions["branch"].trigger()
    driver.run(4)
    child = workspace.run
    assert child is not None
    assert parent is not None
    assert [(first, s.objective.beta) for first, s in child.changes] == [(1, 0.04), (5, 1.0)]
    assert child.series["kl"].values[3] == parent.series["kl"].values[3]
    assert child.series["kl"].values[7] != parent.series["kl"].values[7]


def test_a_branch_of_a_branch_reaches_back_to_the_first_run(driver: Driver) -> None:
    driver.run(6)
    workspace = driver.program.workspace
    first = workspace.run
    for at in (4, 2):
        workspace.move_to(at)
        driver.program.actions["branch"].trigger()
        driver.run(3)
    last = workspace.run
    assert last is not None
    assert first is not None
    assert last.head == 5
    assert np.array_equal(last.step(1).logp, first.step(1).logp)  # type: ignore[union-attr]


def test_a_new_run_keeps_the_old_one(driver: Driver) -> None:
    driver.run(3)
    driver.program.actions["new_run"].trigger()
    assert driver.head == 0
    assert [run.head for run in driver.program.workspace.runs] == [3, 0]
