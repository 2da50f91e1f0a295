"""A teacher prepares a session and hands it out; somebody else opens it and works on copies."""

from __future__ import annotations

import json
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QContextMenuEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.controllers.session_files import BUSY
from app.settings.preferences import load_preferences
from grpo_core.errors import SettingsError
from grpo_core.runs.manifest import FORMAT, VERSION
from grpo_core.runs.run_file import RunReader
from grpo_core.runs.session import SUFFIX, Manifest, save_session
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import panel, row_of
from tests.sessions import read_manifest

pytestmark = pytest.mark.one_window


def saved(driver: Driver, target: Path) -> Path:
    driver.program.session_files.save(target)
    driver.opened()
    return target


def drop(driver: Driver, *urls: QUrl) -> None:
    """Drop files on the window, and wait until they are open."""
    data = QMimeData()
    data.setUrls(urls)
    copy = Qt.DropAction.CopyAction
    event = QDropEvent(QPointF(5, 5), copy, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    driver.program.window.dropEvent(event)
    driver.opened()


def menu_over(driver: Driver, widget: QWidget) -> QMenu:
    """Open the context menu of a control."""
    controls = panel(driver, "controls")
    place = widget.mapTo(controls, QPoint(3, 3))
    QApplication.sendEvent(
        controls, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, controls.mapToGlobal(place))
    )
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    return menu


def choose(menu: QMenu, text: str) -> None:
    next(action for action in menu.actions() if action.text() == text).trigger()
    menu.close()


def test_a_prepared_session_opens_elsewhere_as_it_was_left(driver: Driver, qtbot: QtBot, tmp_path: Path) -> None:
    driver.run(12)
    driver.program.actions["new_run"].trigger()
    driver.run(5)
    program, workspace = driver.program, driver.program.workspace
    program.run_manager.show(workspace.runs[0])
    workspace.move_to(7)
    driver.program.layouts.choose("Compare")
    program.window.docks["metrics"].hide()
    workspace.editing.edit({"objective.beta": 0.3}, "Prepare")
    choose(menu_over(driver, row_of(driver, "learner.group_size").name), "Lock “Group size”")
    choose(menu_over(driver, row_of(driver, "learner.mu").name), "Hide “Passes”")
    choose(menu_over(driver, panel(driver, "controls").preset), "Lock the algorithm")
    program.part("teaching").presenter.speaker.notes.setPlainText("Was passiert bei β = 0,3?")
    path = saved(driver, tmp_path / f"lecture – ü{SUFFIX}")
    assert any("2 runs" in text for text in driver.messages)

    before = path.read_bytes()
    other = make(qtbot, tmp_path / "other home")
    other.open(path)
    theirs = other.program.workspace
    assert [run.head for run in theirs.runs] == [12, 5]  # the blank run of the start has made room
    assert (theirs.run, theirs.cursor.step) == (theirs.runs[0], 7)
    assert theirs.editing.settings.objective.beta == 0.3
    assert theirs.editing.pending == {}
    assert other.program.part("teaching").presenter.speaker.notes.toPlainText() == "Was passiert bei β = 0,3?"
    assert other.program.preferences.current.layout == "Compare"
    docks = other.program.window.docks
    assert docks["what_if"].isVisible()
    assert not docks["metrics"].isVisible()
    assert not row_of(other, "learner.group_size").isEnabled()
    assert row_of(other, "learner.mu").isHidden()
    controls = panel(other, "controls")
    assert not controls.preset.isEnabled()
    assert controls.restraints.text.text() == "2 controls are locked and 1 control is hidden for this session."
    other.run(9)
    assert theirs.runs[0].head == 16
    assert path.read_bytes() == before
    assert {run.path.parent for run in theirs.runs} == {other.program.paths.runs}
    controls.restraints.button.click()
    other.settle()
    assert row_of(other, "learner.group_size").isEnabled()
    assert not row_of(other, "learner.mu").isHidden()
    assert not controls.restraints.isVisible()
    take_down(other)


def test_what_is_locked_is_not_changed_by_other_ways_either(driver: Driver) -> None:
    editing = driver.program.workspace.editing
    editing.restrict(["objective.beta"], [])
    with pytest.raises(SettingsError, match="locked for this session"):
        editing.edit({"objective.beta": 0.5}, "Change")
    controls = panel(driver, "controls")
    place = controls.preset.findText("DAPO")
    controls.preset.setCurrentIndex(place)
    controls.preset.activated.emit(place)
    assert editing.settings.objective.beta == 0.04  # the preset would have none
    assert editing.settings.objective.clip_high == 0.28
    driver.run(1)
    assert driver.program.workspace.editing.locked == {"objective.beta"}


def test_a_session_before_its_first_update_is_a_new_run_with_its_settings(driver: Driver, tmp_path: Path) -> None:
    editing = driver.program.workspace.editing
    editing.edit({"learner.group_size": 4, "task.landscape": "double_peak"}, "Prepare")
    path = saved(driver, tmp_path / "fresh.grposession")
    assert read_manifest(path).runs == ()
    editing.edit({"learner.group_size": 16}, "Change")
    driver.open(path)
    run = driver.shown_run
    assert (run.head, run.origin.settings.bandit.landscape) == (0, "double_peak")
    assert driver.program.workspace.editing.wanted.learner.group_size == 4
    driver.run(2)
    assert driver.head == 2


def test_the_second_of_two_runs_may_be_the_one_that_is_shown(driver: Driver, tmp_path: Path) -> None:
    driver.run(3)
    driver.program.runs.new_run()
    driver.run(2)
    first, second = driver.program.workspace.runs
    assert driver.program.workspace.run is second
    path = saved(driver, tmp_path / f"two{SUFFIX}")
    assert read_manifest(path).shown == 1
    driver.open(path)
    run = driver.shown_run
    assert run not in (first, second)
    assert (run.head, run.title) == (2, second.title)


def test_a_session_can_be_dropped_on_the_window_and_is_among_the_recent_files(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.run(3)
    path = saved(driver, tmp_path / "Dropped.grposession")
    kept = tmp_path / "kept.grpo"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(kept), ""))
    driver.program.actions["save_as"].trigger()
    driver.opened()
    drop(driver, QUrl.fromLocalFile(str(path)))
    assert len(driver.program.workspace.runs) == 2
    menu = driver.program.window.findChild(QMenu, "menu File/Open recent")
    assert isinstance(menu, QMenu)
    assert [action.text() for action in menu.actions()] == ["Open Dropped.grposession", "Open kept.grpo"]
    menu.actions()[1].trigger()
    driver.opened()
    assert driver.program.workspace.run.path == kept  # type: ignore[union-attr]
    menu = driver.program.window.findChildren(QMenu, "menu File/Open recent")[-1]
    assert menu.actions()[0].text() == "Open kept.grpo"


def test_the_menu_saves_and_opens_through_dialogs(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.run(2)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "v1.2 Lecture"), ""))
    driver.program.actions["save_session"].trigger()
    driver.opened()
    path = tmp_path / "v1.2 Lecture.grposession"
    assert path.exists()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    driver.program.actions["open_run"].trigger()
    driver.opened()
    assert driver.head == 2
    assert any("You work on copies" in text for text in driver.messages)


def manifest(**changes: Any) -> str:
    return json.dumps({"format": FORMAT, "format_version": VERSION, **changes})


@pytest.mark.own_window
def test_a_file_that_is_no_session_is_told_and_nothing_changes(driver: Driver, tmp_path: Path) -> None:
    cases: list[tuple[bytes | str, str]] = [
        (b"", "is empty"),
        (b"nonsense", "not a session file"),
        ("{", "not JSON"),
        (manifest(step=-1), "step is -1"),
    ]
    path = tmp_path / "broken.grposession"
    before = driver.program.workspace.run
    for content, words in cases:
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("manifest.json", content)
        driver.open(path)
        assert driver.program.workspace.run is before
        assert any(words in text for text in driver.messages)
    assert not list(driver.program.paths.runs.iterdir())
    assert not driver.program.preferences.current.recent


def test_names_that_this_version_does_not_know_do_no_harm(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "odd.grposession"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "manifest.json",
            manifest(
                layout="../../etc", panels=["nothing", "controls"], locked=["objective.nothing", ""], hidden=["x"]
            ),
        )
    driver.open(path)
    assert driver.program.preferences.current.layout == "Bandit"
    assert driver.program.window.docks["controls"].isVisible()
    driver.run(1)
    assert driver.head == 1


def test_closing_while_a_session_is_written_leaves_the_old_one_or_a_whole_one(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = make(qtbot, tmp_path / "home")
    driver.run(30)
    path = saved(driver, tmp_path / "x.grposession")
    driver.program.session_files.save(path)
    driver.program.session_files.save(tmp_path / "second.grposession")
    assert any("is not finished yet" in text for text in driver.messages)
    driver.program.session_files.say_at_work()
    line = next(line for line in driver.program.window.messages.lines if line.message.key == BUSY)
    line.buttons[0].click()
    preferences = driver.program.paths.preferences
    take_down(driver)
    assert len(read_manifest(path).runs) == 1
    assert sorted(found.name for found in tmp_path.iterdir()) == ["home", "x.grposession"]
    assert load_preferences(preferences)[0].recent == (str(path),)


def test_a_long_saving_says_how_much_is_done(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on = threading.Event()

    def slow(*arguments: Any) -> Manifest:
        arguments[-1](0.25)
        assert on.wait(60)
        return save_session(*arguments)

    monkeypatch.setattr("app.controllers.session_files.save_session", slow)
    driver.run(2)
    driver.program.session_files.save(tmp_path / "slow.grposession")
    driver.qtbot.waitUntil(lambda: "Saving slow.grposession: 25% …" in driver.messages)
    driver.program.session_files.open(tmp_path / "slow.grposession")  # waits until it is saved
    on.set()
    driver.opened()
    assert any(text.startswith("slow.grposession is open.") for text in driver.messages)
    assert not any("%" in text for text in driver.messages)


def test_a_session_that_cannot_be_written_is_told(driver: Driver, tmp_path: Path) -> None:
    driver.run(1)
    driver.program.session_files.save(tmp_path / "no such folder" / "x.grposession")
    driver.opened()
    assert any("There is no folder" in text for text in driver.messages)
    assert not driver.program.preferences.current.recent


def test_while_presenting_the_class_sees_the_layout_for_it(driver: Driver, tmp_path: Path) -> None:
    driver.run(2)
    run = driver.shown_run
    driver.program.controller.commit()
    path = tmp_path / "x.grposession"
    save_session(path, Manifest(shown=0, step=1, layout="Compare", notes="Say this."), [run.path])
    driver.program.part("teaching").presenter.start()
    driver.open(path)
    assert driver.program.preferences.current.layout == "Bandit"
    assert not driver.program.window.docks["what_if"].isVisible()
    assert driver.program.part("teaching").presenter.speaker.notes.toPlainText() == "Say this."
    with RunReader.open(driver.program.workspace.run.path) as reader:  # type: ignore[union-attr]
        assert reader.last == 2
