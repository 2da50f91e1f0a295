"""The runs of a window: branches, switching, files that others write, and missing files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.training.controller import State
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from tests.app.workspace.conftest import Desk, on_disk, same_numbers


def beta(desk: Desk) -> float:
    return desk.workspace.editing.settings.objective.beta


def turn(desk: Desk, value: float) -> None:
    desk.workspace.editing.edit({"objective.beta": value}, "Change beta")


# -- branches ----------------------------------------------------------------------------------------------------------


def test_a_branch_begins_with_its_parents_numbers_and_repeats_it_bit_for_bit(desk: Desk) -> None:
    desk.run(9)
    parent = desk.shown
    child = desk.run_manager.branch(4)
    assert (child.head, desk.here, child in desk.workspace.runs) == (4, 4, True)
    for name, series in parent.series.items():
        assert np.array_equal(child.series[name].values, series.values[:4], equal_nan=True)
    desk.run(5)
    assert same_numbers(child, parent, range(1, 10))
    assert parent.head == 9


def test_a_branch_has_a_file_only_from_its_first_update_on(desk: Desk) -> None:
    desk.run(3)
    child = desk.run_manager.branch(2)
    assert not child.path.exists()
    with pytest.raises(GrpoError, match="its own file"):
        desk.run_manager.save_as(child, desk.folder / "copy.grpo")
    desk.run(1)
    assert on_disk(child) == 3


def test_a_branch_goes_on_while_its_parent_trains(desk: Desk) -> None:
    desk.go(20)
    parent = desk.shown
    child = desk.run_manager.branch(10)
    desk.player.set_length(200)
    desk.run(8)
    assert child.head == 18
    assert on_disk(parent) == parent.head
    assert same_numbers(child, parent, range(1, 19))
    desk.run_manager.show(parent)
    desk.run(1)
    assert desk.said == []


def test_a_branch_of_an_unstarted_branch_goes_on_from_the_run_that_has_a_file(desk: Desk) -> None:
    desk.run(6)
    first = desk.shown
    desk.run_manager.branch(4)
    child = desk.run_manager.branch(4)
    grandchild = desk.run_manager.branch(2)
    desk.run(3)
    assert same_numbers(grandchild, first, range(1, 6))
    desk.run_manager.show(child)
    desk.run(1)
    assert same_numbers(child, first, range(1, 6))


def test_a_branch_at_update_0_is_a_run_from_the_start(desk: Desk) -> None:
    desk.run(3)
    first = desk.shown
    again = desk.run_manager.branch(0)
    assert again.head == 0
    desk.run(3)
    assert same_numbers(again, first, range(1, 4))


def test_the_knobs_turned_for_a_branch_are_its_own(desk: Desk) -> None:
    desk.run(5)
    parent = desk.shown
    turn(desk, 0.5)
    child = desk.run_manager.branch(3)
    assert beta(desk) == 0.5
    desk.run(1)
    assert child.settings_at(4).objective.beta == 0.5
    desk.run_manager.show(parent)
    assert beta(desk) == 0.04


def closed_branch(desk: Desk) -> tuple[RunHandle, Path]:
    """Branch a run of six updates after the fourth for two more, and close the branch. Return the run and the branch's
    file.
    """
    desk.run(6)
    first = desk.shown
    child = desk.run_manager.branch(4)
    desk.run(2)
    desk.run_manager.new_run(Settings(seed=1))
    desk.run(1)  # another run trains, so the files of the first two are closed
    desk.run_manager.close_run(child)
    return first, child.path


def test_a_reopened_branch_shows_its_parents_updates_and_can_be_branched_there(desk: Desk) -> None:
    first, path = closed_branch(desk)
    reopened = desk.run_manager.open(path)
    assert same_numbers(reopened, first, range(1, 7))
    grandchild = desk.run_manager.branch(2)
    desk.run(4)
    assert same_numbers(grandchild, first, range(1, 7))


def test_without_its_parent_a_branch_keeps_its_curves_and_says_what_is_missing(desk: Desk) -> None:
    first, path = closed_branch(desk)
    desk.run_manager.close_run(first)
    first.path.unlink()
    reopened = desk.run_manager.open(path)
    assert len(reopened.series["kl"].values) == 6
    desk.workspace.move_to(2)
    assert desk.workspace.view.step.step is None
    desk.qtbot.waitUntil(lambda: not desk.workspace.frame_due)
    assert any("no longer exists" in sentence for sentence in desk.said)
    desk.workspace.move_to(4)
    assert desk.workspace.view.step.number == 4
    desk.workspace.follow()
    desk.run(1)
    assert reopened.head == 7


# -- switching ---------------------------------------------------------------------------------------------------------


def test_showing_another_run_leaves_the_first_one_training_and_its_knobs_alone(desk: Desk) -> None:
    desk.go(5)
    first = desk.shown
    desk.run_manager.new_run(Settings())
    assert desk.shown.head == 0
    turn(desk, 0.9)
    desk.until(first.head + 10)
    assert len(first.changes) == 1
    desk.run_manager.show(first)
    desk.player.pause()
    desk.rest()
    assert desk.here == first.head


def test_a_knob_that_was_turned_waits_while_another_run_is_shown(desk: Desk) -> None:
    desk.run(2)
    first = desk.shown
    turn(desk, 0.5)
    second = desk.run_manager.new_run(Settings(seed=1))
    desk.run_manager.show(first)
    assert beta(desk) == 0.04  # it went along with the new run
    turn(desk, 0.3)
    desk.run_manager.show(second)
    assert beta(desk) == 0.04
    desk.run_manager.show(first)
    assert beta(desk) == 0.3
    desk.run(1)
    assert first.changes[-1][0] == 3


def test_every_run_has_a_number_of_its_own(desk: Desk) -> None:
    desk.run(1)
    path = desk.shown.path
    desk.run_manager.branch(1)
    desk.run_manager._count = 0  # as after a restart
    desk.run_manager.open(path)
    desk.run_manager.new_run(Settings())
    numbers = [run.title.split()[1] for run in desk.workspace.runs]
    assert numbers == ["1", "2", "3"]


def test_closing_the_last_run_leaves_a_fresh_one_and_its_file(desk: Desk) -> None:
    desk.go(5)
    old = desk.shown
    desk.run_manager.close_run(old)
    desk.qtbot.waitUntil(lambda: desk.controller.state is State.IDLE)
    assert (len(desk.workspace.runs), desk.shown.head) == (1, 0)
    assert on_disk(old) >= 5
    desk.run(2)
    assert desk.shown.head == 2


def test_a_run_that_was_closed_while_it_trained_can_be_opened_at_once(desk: Desk) -> None:
    desk.go(20)
    path = desk.shown.path
    desk.run_manager.close_run(desk.shown)
    again = desk.run_manager.open(path)
    assert (again.head >= 20, again.note, again.read_only) == (True, "", "")


def test_closing_a_run_that_replays_does_not_replay_the_next(desk: Desk) -> None:
    desk.run(3)
    desk.run_manager.new_run(Settings())
    desk.run(5)
    desk.workspace.move_to(1)
    desk.player.toggle()
    desk.run_manager.close_run(desk.shown)
    desk.rest()
    assert desk.here == 3


def test_closing_a_run_that_is_closed_already_leaves_the_others(desk: Desk) -> None:
    first = desk.shown
    second = desk.run_manager.new_run(Settings())
    desk.run_manager.close_run(first)
    desk.run_manager.close_run(first)
    assert desk.workspace.runs == [second] and desk.shown is second
