"""A class watches: full screen, a black screen, a remote's keys; afterwards, everything is as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.settings.preferences import load_preferences
from app.teaching.presenting import screens
from app.trainers.recorded_run import RecordedRun
from app.window.docks import put_back
from app.workspace.cursor import Stage
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import panel, press
from tests.app.teaching.presenting.hands import places, settle, stage_of, start
from tests.core.trainers.trace_files import DATA

pytestmark = pytest.mark.one_window

Key = Qt.Key


def test_presenting_fills_the_screen_for_a_projector_and_ends_as_it_began(driver: Driver) -> None:
    window, look = driver.program.window, driver.program.look
    window.resize(1300, 740)
    driver.program.layouts.choose("Compare")
    driver.run(3)
    window.docks["controls"].hide()
    settle(driver)
    before, size = places(driver), window.size()
    start(driver)
    assert window.isFullScreen()
    assert (look.theme.name, driver.program.preferences.current.theme) == ("projector", "light")
    assert not window.menuBar().isVisible()
    assert window.docks["controls"].isVisible()  # the layout Present has them
    driver.program.actions["present.leave"].trigger()
    settle(driver)
    assert (look.choice, look.scale, window.size()) == ("light", 1.0, size)
    assert not window.isFullScreen()
    assert window.menuBar().isVisible()
    assert places(driver) == before
    assert driver.program.preferences.current.layout == "Compare"
    panel(driver, "policy_bars").focus_picture()
    press(driver, Key.Key_B)  # letters are letters again
    assert not driver.program.part("teaching").presenter.blank.isVisible()
    press(driver, Key.Key_Period)
    driver.rest()
    assert driver.head == 4


@pytest.mark.long
def test_a_recorded_run_is_presented_in_its_own_layout_and_stands_in_it_afterwards(driver: Driver) -> None:
    window, workspace = driver.program.window, driver.program.workspace
    start(driver)
    driver.program.runs.open_path(DATA / "grpo")  # while the class looks on, over the layout of a bandit
    driver.qtbot.waitUntil(lambda: isinstance(workspace.run, RecordedRun))
    settle(driver)
    assert window.isFullScreen() and window.docks["completions"].isVisible()
    assert not window.docks["policy_bars"].isVisible()
    driver.program.actions["present.leave"].trigger()
    settle(driver)
    assert window.docks["completions"].isVisible() and window.docks["diagnosis"].isVisible()
    assert not window.docks["policy_bars"].isVisible()
    start(driver)
    assert window.docks["completions"].isVisible() and not window.docks["policy_bars"].isVisible()


def test_a_remote_steps_and_blanks_whatever_has_the_focus(driver: Driver) -> None:
    driver.run(2)
    start(driver)
    workspace = driver.program.workspace
    workspace.move_to(1)
    workspace.show_stage(Stage.SAMPLE)
    focuses: list[QWidget] = [panel(driver, "policy_bars").plot, panel(driver, "controls").preset]
    for widget in focuses:
        workspace.show_stage(Stage.SAMPLE)
        widget.setFocus()
        assert widget.hasFocus()
        press(driver, Key.Key_PageDown)
        press(driver, Key.Key_PageDown)
        assert stage_of(driver) is Stage.NORMALIZE
        press(driver, Key.Key_PageUp)
        assert stage_of(driver) is Stage.SCORE
    panel(driver, "policy_bars").focus_picture()
    blank = driver.program.part("teaching").presenter.blank
    for key in (Key.Key_B, Key.Key_Period):
        press(driver, key)
        assert blank.isVisible()
        assert blank.geometry() == driver.program.window.rect()
        press(driver, Key.Key_PageDown)  # any key brings the picture back, and does nothing else
        assert not blank.isVisible()
        assert (workspace.cursor.step, workspace.cursor.stage) == (1, Stage.SCORE)
    assert QApplication.focusWidget() is not blank
    press(driver, Key.Key_Down)
    press(driver, Key.Key_Down)
    driver.rest()
    assert workspace.cursor.step == 2


def test_a_blank_screen_lifts_by_a_click_and_shrugs_off_a_held_key(driver: Driver, qtbot: QtBot) -> None:
    start(driver)
    blank = driver.program.part("teaching").presenter.blank
    driver.program.part("teaching").presenter.toggle_blank()
    assert blank.grab().toImage().pixelColor(5, 5) == Qt.GlobalColor.black
    held = QKeyEvent(QKeyEvent.Type.KeyPress, Key.Key_B, Qt.KeyboardModifier.NoModifier, "b", autorep=True)
    QApplication.sendEvent(blank, held)
    assert blank.isVisible()
    QTest.mouseClick(blank, Qt.MouseButton.LeftButton)
    assert not blank.isVisible()


def test_a_maximized_window_becomes_a_plain_one_before_it_fills_a_screen(driver: Driver) -> None:
    window = driver.program.window
    window.showMaximized()
    driver.settle()
    assert window.isMaximized()
    screens.fill(window, window.screen())
    driver.settle()
    assert window.windowState() & ~Qt.WindowState.WindowActive == Qt.WindowState.WindowFullScreen


@pytest.mark.long
def test_closing_while_presenting_keeps_the_desk(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    first = make(qtbot, tmp_path / "home")
    first.program.window.resize(1300, 740)
    first.program.layouts.choose("Compare")
    first.settle()
    wanted, docks = first.program.window.saveState(), first.program.window.docks
    start(first)
    preferences = first.program.paths.preferences
    take_down(first)
    assert load_preferences(preferences)[0].theme == "light"
    second = make(qtbot, tmp_path / "home")
    assert second.program.layout_files.restore(second.program.window) is None
    second.settle()
    assert {n for n, d in second.program.window.docks.items() if d.isVisible()} == shown(second, wanted)
    assert not second.program.window.isFullScreen()
    assert set(docks) == set(second.program.window.docks)
    take_down(second)


def shown(driver: Driver, state: Any) -> set[str]:
    """Return the docks that are visible in a state of the window."""
    put_back(driver.program.window, driver.program.window.docks, state)
    driver.settle()
    return {name for name, dock in driver.program.window.docks.items() if dock.isVisible()}


def test_pressing_the_key_again_and_again_ends_well(driver: Driver) -> None:
    before = places(driver)
    for _ in range(4):
        driver.program.actions["present"].trigger()
    settle(driver)
    assert not driver.program.window.isFullScreen()
    assert places(driver) == before
