"""The speaker's window: what comes next, notes that are kept, and a remote's keys that end up in none."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.workspace.cursor import Stage
from tests.app.conftest import Driver, make, take_down
from tests.app.presenting.hands import start

Key = Qt.Key


def test_the_speaker_reads_what_comes_next(driver: Driver) -> None:
    driver.program.actions["speaker"].trigger()
    speaker, workspace = driver.program.presenter.speaker, driver.program.workspace
    driver.settle()
    assert "Update 1 is computed" in speaker.next.text()
    driver.run(2)
    workspace.move_to(1)
    workspace.show_stage(Stage.SAMPLE)
    driver.settle()
    assert speaker.next.text().startswith("Score.")
    assert speaker.now.text() == "Update 1 of 2 · 1 Sample"
    workspace.show_stage(Stage.UPDATE, 0)
    driver.settle()
    assert speaker.next.text().startswith("Pass 2 of 4")
    workspace.show_stage(Stage.UPDATE)
    driver.settle()
    assert "Update 2 is shown" in speaker.next.text()
    assert speaker.alone.isVisible()
    assert not speaker.choice.isVisible()


def test_keys_of_a_remote_act_in_the_speaker_window_and_end_up_in_no_note(driver: Driver) -> None:
    driver.run(1)
    start(driver)
    presenter = driver.program.presenter
    presenter.speaker.show()
    presenter.speaker.activateWindow()
    driver.qtbot.waitUntil(presenter.speaker.isActiveWindow)
    driver.program.workspace.show_stage(Stage.SAMPLE)
    notes = presenter.speaker.notes
    notes.setFocus()
    QTest.keyClick(notes, Key.Key_PageDown)
    assert driver.program.workspace.cursor.stage is Stage.SCORE
    QTest.keyClick(notes, Key.Key_B)
    assert presenter.blank.isVisible()
    QTest.keyClick(notes, Key.Key_PageDown)
    assert not presenter.blank.isVisible()
    assert driver.program.workspace.cursor.stage is Stage.SCORE
    assert presenter.speaker.text == ""
    presenter.speaker.edit.click()
    notes.setFocus()
    QTest.keyClicks(notes, "b. ")
    assert presenter.speaker.text == "b. "


def test_notes_are_there_again_at_the_next_start(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    first = make(qtbot, tmp_path / "home")
    first.program.presenter.speaker.show()
    first.program.presenter.speaker.notes.insertPlainText("Größe 1")
    take_down(first)
    second = make(qtbot, tmp_path / "home")
    assert second.program.presenter.speaker.text == "Größe 1"
    take_down(second)


def test_notes_that_cannot_be_written_are_told(driver: Driver) -> None:
    (driver.program.paths.config / "notes.txt").mkdir()
    driver.program.presenter.notes.save()
    assert any("The notes could not be saved" in text for text in driver.messages)
