"""A run whose file an earlier version thinned, as the window sees it."""

from __future__ import annotations

import pytest

from app.panels.timeline import preview
from app.workspace.run_handle import RunHandle
from grpo_core.runs.thinning import Stretch
from tests.app.workspace.conftest import Desk
from tests.core.runs.thinned import thinned

STRETCHES = Stretch(1, 32, 8), Stretch(33, 48, 2)


@pytest.fixture
def run(desk: Desk) -> RunHandle:
    """The run of 60 updates that is shown, opened from its thinned file."""
    desk.run(60)
    path = desk.shown.path
    desk.run_manager.close_run(desk.shown)
    thinned(path, *STRETCHES)
    return desk.run_manager.open(path)


def test_the_cursor_walks_over_what_is_kept(desk: Desk, run: RunHandle) -> None:
    assert run.head == 60 and run.thinned == STRETCHES
    assert all(len(series.values) == 60 for series in run.series.values())
    workspace = desk.workspace
    workspace.move_to(1)
    seen = [desk.here]
    for _ in range(3):
        desk.player.step()
        seen.append(desk.here)
        assert workspace.view.step.step is not None
    assert seen == [1, 8, 16, 24]
    desk.player.step_back()
    assert desk.here == 16
    workspace.move_to(0)
    assert desk.here == 0
    workspace.follow()
    assert desk.here == 60
    assert "Thinned out" in preview(run, 3)
    assert "Thinned out" not in preview(run, 60)
    assert desk.said == []


def test_reading_the_view_moves_no_cursor_and_says_nothing_and_the_next_frame_does_both_once(
    desk: Desk, run: RunHandle
) -> None:
    workspace = desk.workspace
    workspace.cursor = workspace.cursor.at(31)
    workspace.request_frame()
    assert workspace.view.cursor.step == workspace.view.step.number == run.kept(31) == 24
    assert workspace.cursor.step == 31 and desk.said == []
    for _ in range(2):
        desk.qtbot.waitUntil(lambda: not workspace.frame_due)
        assert workspace.cursor.step == 24
        assert len(desk.said) == 1 and "thinned out" in desk.said[-1].lower()
        workspace.request_frame()


def test_a_thinned_run_branches_and_goes_on(desk: Desk, run: RunHandle) -> None:
    desk.workspace.move_to(16)
    child = desk.run_manager.branch(16)
    assert child.thinned == (Stretch(1, 15, 8),)
    desk.run(3)
    assert child.head == 19
    desk.workspace.move_to(15)
    assert desk.here == 8
    desk.run_manager.close_run(child)
    again = desk.run_manager.open(child.path)
    assert again.thinned == child.thinned
    desk.run_manager.show(run)
    desk.run(5)
    assert run.head == 65 and run.thinned == STRETCHES
