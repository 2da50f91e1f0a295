"""The runs of a window: branches, switching, files that others write, and files that are gone."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from app.training.controller import State
from grpo_core.config import BanditTask, Objective, Optimizer, Settings
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.runs.database import VERSION
from grpo_core.runs.run_file import RunWriter
from tests.app.workspace.conftest import Desk, same_numbers


def beta(desk: Desk) -> float:
    return desk.workspace.editing.settings.objective.beta


def turn(desk: Desk, value: float) -> None:
    desk.workspace.editing.edit({"objective.beta": value}, "Change beta")


# -- branches ----------------------------------------------------------------------------------------------------------


def test_a_branch_begins_with_its_parents_numbers_and_repeats_it_bit_for_bit(desk: Desk) -> None:
    desk.run(9)
    parent = desk.shown
    child = desk.session.branch(4)
    assert (child.head, desk.here, child in desk.workspace.runs) == (4, 4, True)
    for name, series in parent.series.items():
        assert np.array_equal(child.series[name].values, series.values[:4], equal_nan=True)
    desk.run(5)
    assert same_numbers(child, parent, range(1, 10))
    assert parent.head == 9


def test_a_branch_has_a_file_only_from_its_first_update_on(desk: Desk) -> None:
    desk.run(3)
    child = desk.session.branch(2)
    assert not child.path.exists()
    with pytest.raises(GrpoError, match="no file of its own"):
        desk.session.save_as(child, desk.folder / "copy.grpo")
    desk.run(1)
    assert child.on_disk == 3


def test_a_branch_goes_on_while_its_parent_trains(desk: Desk) -> None:
    desk.player.set_length(None)
    desk.player.run()
    desk.until(20)
    parent = desk.shown
    child = desk.session.branch(10)
    desk.player.set_length(200)
    desk.run(8)
    assert child.head == 18
    assert parent.on_disk == parent.head
    assert same_numbers(child, parent, range(1, 19))
    desk.session.show(parent)
    desk.run(1)
    assert desk.said == []


def test_a_branch_of_an_unstarted_branch_goes_on_from_the_run_that_has_a_file(desk: Desk) -> None:
    desk.run(6)
    first = desk.shown
    desk.session.branch(4)
    child = desk.session.branch(4)
    grandchild = desk.session.branch(2)
    desk.run(3)
    assert same_numbers(grandchild, first, range(1, 6))
    desk.session.show(child)
    desk.run(1)
    assert same_numbers(child, first, range(1, 6))


def test_a_branch_at_update_0_is_a_run_from_the_start(desk: Desk) -> None:
    desk.run(3)
    first = desk.shown
    again = desk.session.branch(0)
    assert again.head == 0
    desk.run(3)
    assert same_numbers(again, first, range(1, 4))


def test_the_knobs_turned_for_a_branch_are_its_own(desk: Desk) -> None:
    desk.run(5)
    parent = desk.shown
    turn(desk, 0.5)
    child = desk.session.branch(3)
    assert beta(desk) == 0.5
    desk.run(1)
    assert child.settings_at(4).objective.beta == 0.5
    desk.session.show(parent)
    assert beta(desk) == 0.04


def test_a_reopened_branch_shows_its_parents_updates_and_can_be_branched_there(desk: Desk) -> None:
    desk.run(6)
    first = desk.shown
    child = desk.session.branch(4)
    desk.run(2)
    path = child.path
    desk.session.new_run(Settings(seed=1))
    desk.run(1)  # another run trains, so the files of the first two are closed
    desk.session.close_run(child)
    reopened = desk.session.open(path)
    assert same_numbers(reopened, first, range(1, 7))
    grandchild = desk.session.branch(2)
    desk.run(4)
    assert same_numbers(grandchild, first, range(1, 7))


def test_without_its_parent_a_branch_keeps_its_curves_and_says_what_is_missing(desk: Desk) -> None:
    desk.run(6)
    first = desk.shown
    child = desk.session.branch(4)
    desk.run(2)
    path = child.path
    desk.session.new_run(Settings(seed=1))
    desk.run(1)
    desk.session.close_run(child)
    desk.session.close_run(first)
    first.path.unlink()
    reopened = desk.session.open(path)
    assert len(reopened.series["kl"].values) == 6
    desk.workspace.move_to(2)
    assert desk.workspace.view.step.step is None
    assert any("is not there any more" in sentence for sentence in desk.said)
    desk.workspace.move_to(4)
    assert desk.workspace.view.step.number == 4
    desk.workspace.follow()
    desk.run(1)
    assert reopened.head == 7


# -- switching ---------------------------------------------------------------------------------------------------------


def test_showing_another_run_leaves_the_first_one_training(desk: Desk) -> None:
    desk.player.set_length(None)
    desk.player.run()
    desk.until(5)
    first = desk.shown
    desk.session.new_run(Settings())
    assert desk.shown.head == 0
    head = first.head
    desk.until(head + 10)
    desk.session.show(first)
    desk.player.pause()
    desk.rest()
    assert desk.here == first.head


def test_a_knob_that_was_turned_waits_while_another_run_is_shown(desk: Desk) -> None:
    desk.run(2)
    first = desk.shown
    turn(desk, 0.5)
    second = desk.session.new_run(Settings(seed=1))
    desk.session.show(first)
    assert beta(desk) == 0.04  # it went along with the new run
    turn(desk, 0.3)
    desk.session.show(second)
    assert beta(desk) == 0.04
    desk.session.show(first)
    assert beta(desk) == 0.3
    desk.run(1)
    assert first.changes[-1][0] == 3


def test_a_knob_turned_while_another_run_trains_does_not_reach_it(desk: Desk) -> None:
    desk.player.set_length(None)
    desk.player.run()
    desk.until(5)
    first = desk.shown
    desk.session.new_run(Settings())
    turn(desk, 0.9)
    head = first.head
    desk.until(head + 10)
    assert len(first.changes) == 1


def test_every_run_has_a_number_of_its_own(desk: Desk) -> None:
    desk.run(1)
    path = desk.shown.path
    desk.session.branch(1)
    desk.session._count = 0  # as after a restart
    desk.session.open(path)
    desk.session.new_run(Settings())
    numbers = [run.title.split()[1] for run in desk.workspace.runs]
    assert numbers == ["1", "2", "3"]


def test_closing_the_last_run_leaves_a_fresh_one_and_its_file(desk: Desk) -> None:
    desk.player.set_length(None)
    desk.player.run()
    desk.until(5)
    old = desk.shown
    desk.session.close_run(old)
    desk.qtbot.waitUntil(lambda: desk.controller.state is State.IDLE)
    assert (len(desk.workspace.runs), desk.shown.head) == (1, 0)
    assert old.on_disk >= 5
    desk.run(2)
    assert desk.shown.head == 2


def test_a_run_that_was_closed_while_it_trained_can_be_opened_at_once(desk: Desk) -> None:
    desk.player.set_length(None)
    desk.player.run()
    desk.until(20)
    path = desk.shown.path
    desk.session.close_run(desk.shown)
    again = desk.session.open(path)
    assert (again.head >= 20, again.note, again.read_only) == (True, "", "")


def test_closing_a_run_that_replays_does_not_replay_the_next(desk: Desk) -> None:
    desk.run(3)
    desk.session.new_run(Settings())
    desk.run(5)
    desk.workspace.move_to(1)
    desk.player.toggle()
    desk.session.close_run(desk.shown)
    desk.rest()
    assert desk.here == 3


# -- files -------------------------------------------------------------------------------------------------------------


def test_opening_what_is_open_shows_it(desk: Desk) -> None:
    desk.run(2)
    first = desk.shown
    desk.session.new_run(Settings())
    assert desk.session.open(first.path) is first
    assert len(desk.workspace.runs) == 2


def written(path: Path, updates: int) -> Path:
    from grpo_core.learners import learner

    with RunWriter.create(path, Settings()) as writer:
        for step, _ in zip(learner(Settings()), range(updates), strict=False):
            writer.append(step)
    return path


def test_a_run_that_another_window_writes_can_be_looked_at_only_and_read_again(desk: Desk, tmp_path: Path) -> None:
    path = written(tmp_path / "theirs.grpo", 3)
    writer = RunWriter.open(path)
    run = desk.session.open(path)
    assert "another window" in desk.said[-1]
    desk.player.step()
    assert (run.head, desk.said[-1]) == (3, run.read_only)
    assert desk.workspace.training is not run
    writer.close()
    again = desk.session.open(path)
    assert (again.read_only, len(desk.workspace.runs)) == ("", 2)
    desk.run(1)
    assert again.on_disk == 4


def test_a_run_that_another_window_went_on_with_is_read_again_when_it_is_opened(desk: Desk) -> None:
    desk.run(2)
    path = desk.shown.path
    desk.session.new_run(Settings(seed=1))
    desk.run(1)
    other = Desk(desk.qtbot, desk.folder)
    other.session.open(path)
    other.run(3)
    other.leave()
    desk.session.show(next(run for run in desk.workspace.runs if run.path == path))
    desk.player.step()
    desk.qtbot.waitUntil(lambda: bool(desk.said), timeout=5000)
    assert "open the file again" in desk.said[-1]
    desk.session.open(path)
    assert desk.shown.head == 5
    desk.run(1)
    assert desk.shown.on_disk == 6


def test_a_file_of_a_newer_version_can_be_looked_at_only(desk: Desk, tmp_path: Path) -> None:
    path = written(tmp_path / "newer.grpo", 3)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.close()
    run = desk.session.open(path)
    assert "newer version" in run.read_only
    desk.workspace.move_to(2)
    assert desk.workspace.view.step.number == 2


def test_a_database_of_another_program_is_no_run(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "foreign.grpo"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(x)")
    connection.close()
    shown = desk.shown
    with pytest.raises(RunFileError, match="another program"):
        desk.session.open(path)
    assert desk.shown is shown


def test_a_copy_is_never_saved_over_the_run_itself(desk: Desk) -> None:
    desk.run(2)
    with pytest.raises(RunFileError, match="over itself"):
        desk.session.save_as(desk.shown, desk.shown.path)
    desk.run(1)
    assert desk.shown.on_disk == 3


def test_a_copy_taken_while_the_run_goes_on_is_whole(desk: Desk, tmp_path: Path) -> None:
    desk.player.set_length(None)
    desk.player.run()
    desk.until(10)
    seen = desk.shown.head
    desk.session.save_as(desk.shown, tmp_path / "copy.grpo")
    copy = desk.session.open(tmp_path / "copy.grpo")
    assert copy.head >= seen
    assert same_numbers(copy, desk.workspace.runs[0], range(1, seen + 1))


def test_a_file_that_is_gone_is_told(desk: Desk) -> None:
    desk.run(3)
    run = desk.shown
    desk.session.new_run(Settings())
    desk.run(1)
    run.let_go()
    run._kept.clear()
    run.path.unlink()
    desk.session.show(run)
    assert desk.workspace.view.step.step is None
    assert "is not there any more" in desk.said[-1]


def test_at_its_size_limit_a_run_pauses_with_a_sentence_and_keeps_everything(desk: Desk) -> None:
    desk.session.training.limit = 200_000
    desk.player.set_length(None)
    desk.player.run()
    desk.qtbot.waitUntil(lambda: bool(desk.said), timeout=10_000)
    desk.rest()
    assert "size limit" in desk.said[0]
    assert desk.shown.on_disk == desk.shown.head


def test_after_numbers_that_are_not_finite_a_branch_goes_on_from_an_earlier_update(desk: Desk) -> None:
    task = BanditTask(landscape="custom", custom=(1e9,) + (0.0,) * 9)
    plain = Objective(std="none", baseline="none")
    desk.session.new_run(Settings(task=task, objective=plain, optimizer=Optimizer(learning_rate=0.0)))
    desk.run(3)
    desk.workspace.editing.edit({"optimizer.learning_rate": 1e3}, "Break it")
    desk.player.run_n(60)
    desk.qtbot.waitUntil(lambda: bool(desk.said), timeout=10_000)
    desk.rest()
    assert "not a finite number" in desk.said[0]
    broken = desk.shown
    assert broken.on_disk == broken.head
    desk.workspace.editing.edit({"optimizer.learning_rate": 0.0}, "Mend it")
    child = desk.session.branch(2)
    desk.run(4)
    assert (child.head, broken.head < 63, len(desk.said)) == (6, True, 1)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_file_without_leave_to_write_can_be_looked_at_only(desk: Desk, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.grpo", 3)
    path.chmod(0o444)
    run = desk.session.open(path)
    assert "read-only" in run.read_only
    desk.player.step()
    assert (run.head, desk.said[-1]) == (3, run.read_only)
