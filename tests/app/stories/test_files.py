"""Run files: saved, opened, offered again, shared between windows, cleaned up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.settings.preferences import load_preferences
from tests.app.conftest import Driver, make, take_down

pytestmark = pytest.mark.one_window


def test_save_as_copies_and_the_copy_opens_equal(driver: Driver, tmp_path: Path) -> None:
    driver.run(9)
    run = driver.shown_run
    target = tmp_path / "kept – ünï.grpo"
    driver.program.run_manager.save_as(run, target)
    driver.open(target)
    driver.settle()
    opened = driver.shown_run
    assert opened is not run
    assert opened.head == 9
    assert np.array_equal(opened.series["reward_mean"].values, run.series["reward_mean"].values)
    driver.run(1)
    assert opened.head == 10


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_run_is_told_and_nothing_changes(driver: Driver, tmp_path: Path, content: bytes) -> None:
    broken = tmp_path / "broken.grpo"
    broken.write_bytes(content)
    before = driver.program.workspace.run
    driver.open(broken)
    assert driver.program.workspace.run is before
    assert any("broken.grpo" in text for text in driver.messages)


def test_the_last_run_is_offered_again(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    first = make(qtbot, tmp_path / "home")
    first.run(4)
    preferences = first.program.paths.preferences
    take_down(first)
    last = load_preferences(preferences)[0].last_run
    assert last is not None
    second = make(qtbot, tmp_path / "home")
    second.program.startup.reopen(Path(last))
    second.opened()
    assert (second.head, len(second.program.workspace.runs)) == (4, 1)
    second.run(1)
    assert second.head == 5
    take_down(second)


def test_two_windows_cannot_write_one_run(qtbot: QtBot, driver: Driver, tmp_path: Path) -> None:
    driver.run(3)
    run = driver.shown_run
    other = make(qtbot, tmp_path / "other home")
    other.open(run.path)
    other.settle()
    assert other.head == 3
    assert any("another window" in text for text in other.messages)
    assert not other.program.actions["run_n"].isEnabled()
    other.program.player.run_n(1)
    assert other.head == 3
    driver.run(1)
    assert driver.head == 4
    take_down(other)


def test_a_run_that_was_killed_says_how_much_it_holds(driver: Driver, tmp_path: Path) -> None:
    driver.run(4)
    run = driver.shown_run
    copy = tmp_path / "killed.grpo"
    for ending in ("", "-wal"):
        part = run.path.with_name(run.path.name + ending)
        if part.exists():
            copy.with_name(copy.name + ending).write_bytes(part.read_bytes())
    driver.open(copy)
    assert any("not closed properly" in text and "4 updates" in text for text in driver.messages)
    driver.run(1)
    assert driver.head == 5


@pytest.mark.own_window
def test_the_oldest_of_too_many_runs_go_only_when_asked(driver: Driver) -> None:
    for _ in range(4):
        driver.run(1)
        driver.program.actions["new_run"].trigger()
        driver.settle()
    driver.run(1)
    for old in driver.program.workspace.runs[:4]:
        old.close_file()
    driver.program.workspace.runs = driver.program.workspace.runs[-1:]
    driver.program.preferences.change(kept_runs=2)
    before = len(driver.program.window.messages.lines)
    driver.program.startup.offer_clean_up()
    driver.qtbot.waitUntil(lambda: len(driver.program.window.messages.lines) > before)
    assert len(list(driver.program.paths.runs.glob("*.grpo"))) == 5
    line = driver.program.window.messages.lines[-1]
    line.buttons[0].click()
    assert len(list(driver.program.paths.runs.glob("*.grpo"))) == 2
