"""Run files are opened and copied in the background: the window keeps drawing, and a file that does not respond is
abandoned.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from app.examples import example
from app.panel_registry import EVOLUTION, EXPLAIN
from app.sessions import file_task
from app.widgets.panel import in_window
from app.window.layouts import BANDIT, COMPARE, LANGUAGE
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver
from tests.app.runs import a_run

pytestmark = pytest.mark.one_window


class SlowDisk:
    """A disk on which opening a run takes until ``answers`` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers, self.asked = threading.Event(), threading.Event()
        opened = RunReader.open

        def slow(path: Path) -> RunReader:
            if threading.current_thread() is not threading.main_thread():
                self.asked.set()
                self.answers.wait(60)
            return opened(path)

        monkeypatch.setattr(RunReader, "open", slow)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    made = SlowDisk(monkeypatch)
    yield made
    made.answers.set()


def test_the_window_trains_and_draws_while_a_slow_disk_is_waited_for(
    driver: Driver, disk: SlowDisk, tmp_path: Path
) -> None:
    first, second = a_run(tmp_path / "first.grpo"), a_run(tmp_path / "second.grpo", 5)
    driver.program.runs.open_path(first)
    driver.program.runs.open_path(second)
    driver.qtbot.waitUntil(lambda: "Opening first.grpo …" in driver.messages)
    driver.run(4)
    assert driver.head == 4
    disk.answers.set()
    driver.opened()
    assert [run.title for run in driver.program.workspace.runs[1:]] == ["first", "second"]
    assert driver.head == 5
    assert not [text for text in driver.messages if text.startswith("Opening")]
    workspace = driver.program.workspace
    workspace.move_to(2)  # the file is read on in the window's thread
    driver.settle()
    assert workspace.view.step.step is not None and workspace.view.step.step.step == 2
    driver.run(1)


def test_a_disk_that_never_answers_is_left_behind_after_some_seconds_and_the_next_file_opens(
    driver: Driver, disk: SlowDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_run(tmp_path / "remote.grpo")
    monkeypatch.setattr(file_task, "DEAF_MS", 50)
    tasks = driver.program.runs
    driver.program.runs.open_path(path)
    driver.qtbot.waitUntil(disk.asked.is_set)
    tasks.say_at_work()
    cancel = driver.program.window.messages.lines[-1].buttons[0]
    cancel.click()
    driver.qtbot.waitUntil(lambda: not driver.program.runs.busy)
    assert any("was abandoned; perhaps the disk does not answer" in text for text in driver.messages)
    monkeypatch.undo()
    driver.open(a_run(tmp_path / "here.grpo", 2))
    assert driver.head == 2
    disk.answers.set()
    driver.settle()
    assert len(driver.program.workspace.runs) == 2, "what comes too late is not shown"


@pytest.mark.own_window
def test_the_program_ends_though_a_disk_does_not_answer(
    driver: Driver, disk: SlowDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.runner.DEAF_SECONDS", 0.05)
    driver.program.runs.open_path(a_run(tmp_path / "remote.grpo"))
    driver.qtbot.waitUntil(disk.asked.is_set)
    driver.program.shutdown.close()
    driver.qtbot.waitUntil(lambda: driver.program.window.may_close)


def test_a_run_that_is_open_already_is_shown_once(driver: Driver, tmp_path: Path) -> None:
    path = a_run(tmp_path / "a.grpo")
    link = tmp_path / "link.grpo"
    try:
        link.symlink_to(path)
    except OSError:
        pytest.skip("links cannot be made here")
    for name in (path, path, link):
        driver.open(name)
    assert [run.title for run in driver.program.workspace.runs[1:]] == ["a"]


def test_a_copy_is_refused_without_its_folder_and_otherwise_written_beside_the_window_and_remembered(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "none" / "copy.grpo"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    driver.run(3)
    run = driver.program.workspace.view.run
    driver.program.runs.ask_save()
    driver.opened()
    assert any("There is no folder" in text for text in driver.messages) and not run.saved
    target.parent.mkdir()
    driver.program.runs.ask_save()
    driver.opened()
    assert f"The run is saved as {target}." in driver.messages and run.saved
    assert str(target) in driver.program.preferences.current.recent
    with RunReader.open(target) as reader:
        assert reader.last == 3


@pytest.mark.parametrize(("layout", "evolves"), [(BANDIT, True), (COMPARE, False)])
def test_a_run_of_another_kind_is_opened_in_the_layout_made_for_it_unless_one_for_all_kinds_was_chosen(
    driver: Driver, layout: str, evolves: bool
) -> None:
    program = driver.program
    program.layouts.choose(layout)
    program.runs.open_path(example())
    driver.qtbot.waitUntil(lambda: program.workspace.view.run.origin.settings.is_language)
    driver.settle()
    assert in_window(program.window.docks[EVOLUTION.id]) == evolves
    assert program.preferences.current.layout == (LANGUAGE if evolves else layout)


def test_opening_a_run_of_the_same_kind_leaves_the_docks_where_they_are(driver: Driver, tmp_path: Path) -> None:
    program = driver.program
    program.window.docks[EXPLAIN.id].hide()
    program.runs.open_path(a_run(tmp_path / "run.grpo"))
    driver.qtbot.waitUntil(lambda: program.workspace.view.run.path.name == "run.grpo")
    driver.settle()
    assert not program.window.docks[EXPLAIN.id].isVisible()
