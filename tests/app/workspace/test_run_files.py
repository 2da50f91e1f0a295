"""Run files behind the window: opened, written by others, missing, full."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from grpo_core.config import BanditTask, Objective, Optimizer, Settings
from grpo_core.errors import RunFileError
from grpo_core.runs.database import VERSION
from grpo_core.runs.run_file import RunWriter
from tests.app.runs import a_run
from tests.app.workspace.conftest import Desk, on_disk, same_numbers


def test_opening_what_is_open_shows_it(desk: Desk) -> None:
    desk.run(2)
    first = desk.shown
    desk.run_manager.new_run(Settings())
    assert desk.run_manager.open(first.path) is first
    assert len(desk.workspace.runs) == 2


def test_a_run_that_another_window_writes_can_be_looked_at_only_and_read_again(desk: Desk, tmp_path: Path) -> None:
    path = a_run(tmp_path / "theirs.grpo")
    writer = RunWriter.open(path)
    run = desk.run_manager.open(path)
    assert "another window" in desk.said[-1]
    desk.player.step()
    assert (run.head, desk.said[-1]) == (3, run.read_only)
    assert desk.workspace.training is not run
    writer.close()
    again = desk.run_manager.open(path)
    assert (again.read_only, len(desk.workspace.runs)) == ("", 2)
    desk.run(1)
    assert on_disk(again) == 4


def test_a_run_that_another_window_went_on_with_is_read_again_when_it_is_opened(desk: Desk) -> None:
    desk.run(2)
    path = desk.shown.path
    desk.run_manager.new_run(Settings(seed=1))
    desk.run(1)
    other = Desk(desk.qtbot, desk.folder)
    other.run_manager.open(path)
    other.run(3)
    other.leave()
    desk.run_manager.show(next(run for run in desk.workspace.runs if run.path == path))
    desk.player.step()
    desk.qtbot.waitUntil(lambda: bool(desk.said))
    assert "reopen the file" in desk.said[-1]
    desk.run_manager.open(path)
    assert desk.shown.head == 5
    desk.run(1)
    assert on_disk(desk.shown) == 6


def test_a_file_of_a_newer_version_can_be_looked_at_only(desk: Desk, tmp_path: Path) -> None:
    path = a_run(tmp_path / "newer.grpo")
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.close()
    run = desk.run_manager.open(path)
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
        desk.run_manager.open(path)
    assert desk.shown is shown


def test_a_copy_is_never_saved_over_the_run_itself(desk: Desk) -> None:
    desk.run(2)
    with pytest.raises(RunFileError, match="over itself"):
        desk.run_manager.save_as(desk.shown, desk.shown.path)
    desk.run(1)
    assert on_disk(desk.shown) == 3


def test_a_copy_taken_while_the_run_goes_on_is_whole(desk: Desk, tmp_path: Path) -> None:
    desk.go(10)
    seen = desk.shown.head
    desk.run_manager.save_as(desk.shown, tmp_path / "copy.grpo")
    copy = desk.run_manager.open(tmp_path / "copy.grpo")
    assert copy.head >= seen
    assert same_numbers(copy, desk.workspace.runs[0], range(1, seen + 1))


def test_a_file_that_is_gone_is_told(desk: Desk) -> None:
    desk.run(3)
    run = desk.shown
    desk.run_manager.new_run(Settings())
    desk.run(1)
    run.close_file()
    run.in_memory.clear()
    run.path.unlink()
    desk.run_manager.show(run)
    assert desk.workspace.view.step.step is None
    desk.qtbot.waitUntil(lambda: not desk.workspace.frame_due)
    assert "no longer exists" in desk.said[-1]


def test_at_its_size_limit_a_run_pauses_with_a_sentence_and_keeps_everything(desk: Desk) -> None:
    desk.run_manager.training.limit = 200_000
    desk.player.set_length(None)
    desk.player.run()
    desk.qtbot.waitUntil(lambda: bool(desk.said))
    desk.rest()
    assert "size limit" in desk.said[0]
    assert on_disk(desk.shown) == desk.shown.head


def test_after_numbers_that_are_not_finite_a_branch_goes_on_from_an_earlier_update(desk: Desk) -> None:
    task = BanditTask(landscape="custom", custom=(1e9,) + (0.0,) * 9)
    plain = Objective(std="none", baseline="none")
    desk.run_manager.new_run(Settings(task=task, objective=plain, optimizer=Optimizer(learning_rate=0.0)))
    desk.run(3)
    desk.workspace.editing.edit({"optimizer.learning_rate": 1e3}, "Break it")
    desk.player.run_n(60)
    desk.qtbot.waitUntil(lambda: bool(desk.said))
    desk.rest()
    assert "not a finite number" in desk.said[0]
    broken = desk.shown
    assert on_disk(broken) == broken.head
    desk.workspace.editing.edit({"optimizer.learning_rate": 0.0}, "Mend it")
    child = desk.run_manager.branch(2)
    desk.run(4)
    assert (child.head, broken.head < 63, len(desk.said)) == (6, True, 1)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_file_without_leave_to_write_can_be_looked_at_only(desk: Desk, tmp_path: Path) -> None:
    path = a_run(tmp_path / "mine.grpo")
    path.chmod(0o444)
    run = desk.run_manager.open(path)
    assert "read-only" in run.read_only
    desk.player.step()
    assert (run.head, desk.said[-1]) == (3, run.read_only)
