"""A run that is thinned during training, as the window sees it."""

from __future__ import annotations

import pytest

from app.panels.timeline import preview
from grpo_core.runs import thinning
from tests.app.workspace.conftest import Desk

LIMIT = 600_000


@pytest.fixture
def thin(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk that thins in small blocks under a small limit."""
    monkeypatch.setattr(thinning, "BLOCK", 32)
    monkeypatch.setattr(thinning, "NEWEST", 64)
    desk.run_manager.training.limit = LIMIT
    desk.run_manager.training.set_thinning(True)
    return desk


def test_at_its_size_limit_the_run_goes_on_and_the_cursor_walks_over_what_is_kept(thin: Desk) -> None:
    thin.run(800)
    run = thin.shown
    assert run.head == 800
    assert [said for said in thin.said if "size limit" in said] == thin.said
    assert len(thin.said) == 1
    assert run.thinned[0].first == 1
    every = run.thinned[0].every
    assert every >= 2
    assert all(len(series.values) == 800 for series in run.series.values())
    workspace = thin.workspace
    workspace.move_to(1)
    seen = [thin.here]
    for _ in range(3):
        thin.player.step()
        seen.append(thin.here)
        assert workspace.view.step.step is not None
    assert seen == [1, every, 2 * every, 3 * every]
    thin.player.step_back()
    assert thin.here == 2 * every
    workspace.move_to(0)
    assert thin.here == 0
    workspace.follow()
    assert thin.here == 800
    assert "Thinned out" in preview(run, 3)
    assert "Thinned out" not in preview(run, 800)
    assert len(thin.said) == 1


def test_an_update_that_is_thinned_out_under_the_cursor_gives_way_to_one_that_is_kept(thin: Desk) -> None:
    thin.run(40)
    thin.workspace.move_to(31)
    thin.player.run_n(800)
    thin.rest()
    thin.shown.in_memory.clear()
    thin.workspace.request_frame()
    view = thin.workspace.view
    assert view.step.step is not None
    assert view.cursor.step == view.step.number
    assert view.cursor.step != 31 or thinning.stretch_at(view.run.thinned, 31) is None


def test_reading_the_view_moves_no_cursor_and_says_nothing_and_the_next_frame_does_both_once(thin: Desk) -> None:
    thin.run(40)
    workspace = thin.workspace
    thin.player.run_n(800)
    thin.rest()
    gone = next(n for n in range(17, 800) if thin.shown.kept(n) != n)
    thin.shown.in_memory.clear()
    workspace.cursor = workspace.cursor.at(gone)  # as where it is thinned out between a frame and the next
    workspace.request_frame()
    before = [*thin.said]
    assert workspace.view.cursor.step == workspace.view.step.number == thin.shown.kept(gone)
    assert workspace.cursor.step == gone and thin.said == before
    thin.qtbot.waitUntil(lambda: not workspace.frame_due)
    assert workspace.cursor.step == thin.shown.kept(gone)
    assert len(thin.said) == len(before) + 1 and "thinned out" in thin.said[-1].lower()
    workspace.request_frame()
    thin.qtbot.waitUntil(lambda: not workspace.frame_due)
    assert len(thin.said) == len(before) + 1


def test_a_thinned_run_opens_again_branches_and_goes_on(thin: Desk) -> None:
    thin.run(800)
    path, thinned = thin.shown.path, thin.shown.thinned
    thin.run_manager.close_run(thin.shown)
    run = thin.run_manager.open(path)
    assert (run.head, run.thinned) == (800, thinned)
    point = thinned[0].every * 2
    thin.workspace.move_to(point)
    child = thin.run_manager.branch(point)
    assert child.thinned == (thinning.Stretch(1, point - 1, thinned[0].every),)
    thin.run(3)
    assert child.head == point + 3
    thin.workspace.move_to(point - 1)
    assert thin.here == thinned[0].every
    thin.run_manager.close_run(child)
    again = thin.run_manager.open(child.path)
    assert again.thinned == child.thinned
    thin.run_manager.show(run)
    thin.run(5)
    assert run.head == 805


def test_a_run_that_stopped_at_its_limit_goes_on_once_it_may_thin(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "BLOCK", 32)
    monkeypatch.setattr(thinning, "NEWEST", 64)
    desk.run_manager.training.limit = LIMIT
    desk.player.set_length(None)
    desk.player.run()
    desk.qtbot.waitUntil(lambda: bool(desk.said))
    desk.rest()
    stopped = desk.shown.head
    assert "thin out" in desk.said[0]
    assert desk.shown.thinned == ()
    desk.run_manager.training.set_thinning(True)
    rounds = 0
    while not desk.shown.thinned:  # how soon depends on the log, which is gone once the file was closed
        desk.run(50)
        rounds += 1
        assert rounds < 40
    assert desk.shown.head == stopped + 50 * rounds
