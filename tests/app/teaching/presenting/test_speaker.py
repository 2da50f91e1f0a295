"""The speaker's window: what comes next, notes that are kept, and a remote's keys, none of which type into a note."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.teaching.presenting.speaker import SpeakerWindow
from app.trainers.recorded_run import RecordedRun
from app.workspace.cursor import Stage
from tests.app.conftest import Driver, make, take_down
from tests.app.teaching.lessons.held import lesson_of
from tests.app.teaching.presenting.hands import asking, open_lesson, press, start
from tests.core.trainers.trace_files import DATA

Key = Qt.Key


def test_the_speaker_reads_what_comes_next(driver: Driver) -> None:
    driver.program.actions["speaker"].trigger()
    speaker, workspace = driver.program.part("teaching").presenter.speaker, driver.program.workspace
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
    presenter = driver.program.part("teaching").presenter
    speaking(driver)
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
    assert presenter.speaker.notes.toPlainText() == ""
    presenter.speaker.edit.click()
    notes.setFocus()
    QTest.keyClicks(notes, "b. ")
    assert presenter.speaker.notes.toPlainText() == "b. "


@pytest.mark.long
def test_a_remote_walks_through_every_stage_of_a_recorded_run_to_its_end_and_the_notes_say_so(driver: Driver) -> None:
    """The last update used to stay at its first stage, and the notes said that update 3 would be computed."""
    program, workspace = driver.program, driver.program.workspace
    program.player.staged = False
    program.runs.open_path(DATA / "grpo")
    driver.qtbot.waitUntil(lambda: isinstance(workspace.run, RecordedRun))
    speaker = speaking(driver)
    workspace.move_to(1)
    workspace.show_stage(Stage.SAMPLE)
    driver.settle()
    walked = []
    for _ in range(9):
        walked.append(speaker.now.text())
        assert "is computed" not in speaker.next.text()
        press(driver, Key.Key_PageDown)
    assert [text.split(" · ")[0] for text in walked] == ["Update 1 of 2"] * 5 + ["Update 2 of 2"] * 4
    assert "4 Update, pass 2/2" in speaker.now.text()
    assert speaker.next.text().startswith("This is the last update of the run")
    assert not program.actions["present.next"].isEnabled()
    press(driver, Key.Key_PageUp)
    assert "4 Update, pass 1/2" in speaker.now.text()


def speaking(driver: Driver) -> SpeakerWindow:
    """Return the speaker's window, active, in front of a class."""
    start(driver)
    speaker = driver.program.part("teaching").presenter.speaker
    speaker.show()
    speaker.activateWindow()
    driver.qtbot.waitUntil(speaker.isActiveWindow)
    return speaker


@pytest.mark.quick_cases("number-keys2", "ghost-keys4")
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("choice", (Key.Key_2, Key.Key_Return)),
        ("direction", (Key.Key_Down, Key.Key_Down, Key.Key_Up, Key.Key_Return)),
        ("number", (Key.Key_Up, Key.Key_Down, Key.Key_Return)),
        ("number", (Key.Key_1, Key.Key_Period, Key.Key_5, Key.Key_Return)),
        ("ghost", (Key.Key_Up, Key.Key_Up, Key.Key_Return)),
    ],
)
def test_a_class_is_asked_and_led_on_by_keys_in_the_speakers_window(
    driver: Driver, kind: str, keys: tuple[Qt.Key, ...]
) -> None:
    """The projector says "up, down and Return", but the box of notes used to take each of these keys."""
    lesson, place = asking(kind)
    player = driver.program.part("teaching").lessons.player
    open_lesson(driver, lesson, place)
    speaker = speaking(driver)
    assert player.covered
    press(driver, *keys)
    assert not player.covered and player.placed[place].guess is not None
    press(driver, Key.Key_Left)
    assert player.place == place - 1
    if player.covered:
        press(driver, Key.Key_S)
    press(driver, Key.Key_Right)
    assert player.place == place
    assert speaker.notes.toPlainText() == ""
    press(driver, Key.Key_Escape)
    assert not driver.program.part("teaching").presenter.active, "as Esc does in the window that the class sees"
    assert (player.lesson, player.place) == (lesson, place)


def test_an_open_question_is_skipped_and_the_end_led_on_from_in_the_speakers_window(driver: Driver) -> None:
    player = driver.program.part("teaching").lessons.player
    lesson = lesson_of("one_update")
    open_lesson(driver, lesson, len(lesson.steps) - 1)
    speaking(driver)
    if player.covered:
        press(driver, Key.Key_S)
    press(driver, Key.Key_PageDown)
    assert player.finished
    press(driver, Key.Key_Space)
    assert player.lesson is not None and player.lesson.number == lesson.number + 1


def test_notes_take_keys_from_a_click_until_escape_and_the_class_goes_on(driver: Driver) -> None:
    player, presenter = driver.program.part("teaching").lessons.player, driver.program.part("teaching").presenter
    open_lesson(driver, lesson_of("one_update"))
    speaker = speaking(driver)
    assert speaker.edit.isVisible() and not speaker.edit.isChecked()
    QTest.mouseClick(speaker.notes.viewport(), Qt.MouseButton.LeftButton)
    assert speaker.edit.isChecked() and speaker.notes.hasFocus()
    QTest.keyClicks(speaker.notes, "s 1")
    QTest.keyClick(speaker.notes, Key.Key_Left)
    QTest.keyClick(speaker.notes, Key.Key_Return)
    assert speaker.notes.toPlainText() == "s \n1" and player.place == 0
    press(driver, Key.Key_Escape)
    assert not speaker.edit.isChecked() and not speaker.notes.hasFocus()
    assert presenter.active and player.lesson is not None
    press(driver, Key.Key_Right)
    assert player.place == 1 and speaker.notes.toPlainText() == "s \n1"


def test_notes_are_there_again_at_the_next_start(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    first = make(qtbot, tmp_path / "home")
    first.program.part("teaching").presenter.speaker.show()
    first.program.part("teaching").presenter.speaker.notes.insertPlainText("Größe 1")
    take_down(first)
    second = make(qtbot, tmp_path / "home")
    assert second.program.part("teaching").presenter.speaker.notes.toPlainText() == "Größe 1"
    take_down(second)


def test_notes_that_cannot_be_written_are_told(driver: Driver) -> None:
    (driver.program.paths.config / "notes.txt").mkdir()
    driver.program.part("teaching").presenter.notes.save()
    assert any("The notes could not be saved" in text for text in driver.messages)
