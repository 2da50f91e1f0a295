"""The first hour, with keys and mouse."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QToolButton

from app.panels.timeline import next_event
from app.workspace.cursor import Stage
from app.workspace.player import Mode
from tests.app.conftest import Driver
from tests.app.stories.hands import activate, drag, panel, press

pytestmark = pytest.mark.one_window

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


def test_space_runs_and_pauses(driver: Driver) -> None:
    activate(driver)
    driver.program.player.set_length(None)
    press(driver, Qt.Key.Key_Space)
    driver.qtbot.waitUntil(lambda: driver.head > 3)
    assert driver.program.actions["run"].text() == "Pause"
    press(driver, Qt.Key.Key_Space)
    driver.rest()
    assert driver.program.actions["run"].text() == "Run"
    head = driver.head
    press(driver, Qt.Key.Key_Space, CTRL)
    driver.qtbot.waitUntil(lambda: driver.head > head)
    press(driver, Qt.Key.Key_Space, CTRL)
    driver.rest()


def test_keys_step_walk_the_stages_and_jump(driver: Driver) -> None:
    activate(driver)
    workspace = driver.program.workspace
    press(driver, Qt.Key.Key_Period)
    driver.rest()
    press(driver, Qt.Key.Key_Period, SHIFT)
    driver.rest()
    assert (driver.head, workspace.cursor.stage) == (2, Stage.SAMPLE)
    press(driver, Qt.Key.Key_Period, SHIFT)
    driver.settle()
    assert (driver.head, workspace.cursor.stage) == (2, Stage.SCORE)
    press(driver, Qt.Key.Key_Comma, SHIFT)
    press(driver, Qt.Key.Key_Comma)
    driver.settle()
    assert (workspace.cursor.step, workspace.cursor.stage) == (1, Stage.UPDATE)
    press(driver, Qt.Key.Key_Period)
    driver.rest()
    assert (workspace.cursor.step, driver.head) == (2, 2), "an update that there is already is not computed again"
    press(driver, Qt.Key.Key_Period, CTRL)
    driver.rest()
    assert driver.head == 52
    panel(driver, "metrics").cards[1].setFocus()
    press(driver, Qt.Key.Key_Home)
    driver.settle()
    assert workspace.cursor.step == 0
    press(driver, Qt.Key.Key_N)
    driver.settle()
    first, event = workspace.cursor.step, next_event(driver.shown_run, 0)
    assert event is not None and first == event[0] > 0
    press(driver, Qt.Key.Key_N)
    driver.settle()
    press(driver, Qt.Key.Key_P)
    assert workspace.cursor.step == first
    press(driver, Qt.Key.Key_End)
    assert workspace.following


def test_the_timeline_is_clicked_dragged_and_walked(driver: Driver) -> None:
    driver.run(40)
    track, cursor = panel(driver, "timeline").track, lambda: driver.program.workspace.cursor.step
    middle = track.height() // 2
    drag(track, QPoint(0, middle), QPoint(track.width() // 4, middle), QPoint(track.width() // 2, middle))
    assert cursor() == 20
    track.setFocus()
    for key, expected in (
        (Qt.Key.Key_Right, 21),
        (Qt.Key.Key_PageDown, 25),
        (Qt.Key.Key_PageUp, 21),
        (Qt.Key.Key_Left, 20),
        (Qt.Key.Key_Home, 0),
        (Qt.Key.Key_Left, 0),
        (Qt.Key.Key_End, 40),
        (Qt.Key.Key_Right, 40),
    ):
        QTest.keyClick(track, key)
        assert cursor() == expected
    QTest.mouseClick(track, LEFT, pos=QPoint(track.width() - 1, middle))
    assert driver.program.workspace.following


def test_the_list_of_runs_switches_between_them(driver: Driver) -> None:
    driver.run(3)
    press(driver, Qt.Key.Key_N, CTRL)
    driver.program.runs.new_run()
    runs = driver.program.transport.runs
    runs.setCurrentIndex(0)
    runs.activated.emit(0)
    driver.settle()
    assert driver.head == 3
    assert driver.program.transport.runs.currentIndex() == 0


@pytest.mark.own_window
def test_while_another_run_trains_the_button_says_run(driver: Driver) -> None:
    driver.program.player.set_length(None)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head > 3)
    driver.program.runs.new_run()
    driver.settle()
    assert driver.program.actions["run"].text() == "Run"
    assert driver.program.transport.status.text() == "Run 1 is training"
    driver.program.player.set_length(5)
    driver.program.actions["run"].trigger()
    driver.qtbot.waitUntil(lambda: driver.head == 5)
    driver.rest()
    assert driver.program.transport.status.text().startswith("autosaved")


def test_choosing_a_speed_and_a_length_in_the_toolbar(driver: Driver) -> None:
    bar, player = driver.program.transport, driver.program.player
    for index, speed in enumerate((0.125, 0.25, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, None)):
        bar.speed.activated.emit(index)
        assert player.speed == speed
    bar.length.activated.emit(0)
    driver.program.actions["run"].trigger()
    driver.rest()
    assert driver.head == 50
    assert (driver.program.preferences.current.speed, driver.program.preferences.current.run_length) == (None, 50)


def test_replaying_shows_pause_and_stops_with_a_step(driver: Driver) -> None:
    driver.run(30)
    driver.program.workspace.move_to(0)
    driver.program.player.set_speed(1.0)  # on a busy machine too, the replay is not over by the next line
    driver.program.actions["run"].trigger()
    driver.settle()
    assert driver.program.actions["run"].text() == "Pause"
    driver.program.actions["step"].trigger()
    assert driver.program.player.mode is Mode.RESTING


def test_saving_a_layout_adds_a_command_and_leaves_keys_and_toolbar_as_they_were(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("PySide6.QtWidgets.QInputDialog.getText", lambda *_: ("Mine", True))
    activate(driver)
    bar = driver.program.transport
    before = [button.text() for button in bar.findChildren(QToolButton) if button.isVisible()]
    driver.program.actions["save_layout"].trigger()
    driver.settle()
    assert [button.text() for button in bar.findChildren(QToolButton) if button.isVisible()] == before
    press(driver, Qt.Key.Key_Period)
    driver.rest()
    assert driver.head == 1
    driver.program.actions["panel.step_detail"].trigger()
    assert not driver.program.window.docks["step_detail"].isVisible()
    driver.program.actions["layout.Mine"].trigger()
    driver.settle()
    assert driver.program.window.docks["step_detail"].isVisible()
    assert driver.messages == []


def box_of(driver: Driver, name: str) -> QComboBox:
    """Return a combo box of the window by its accessible name."""
    panel(driver, "controls")
    found = [box for box in driver.program.window.findChildren(QComboBox) if box.accessibleName() == name]
    return next(box for box in found if box.isVisible())


def click_on(driver: Driver, box: QComboBox, place: int) -> None:
    """Open a combo box with the mouse and click one of its entries."""
    QTest.mouseClick(box, LEFT)
    view = box.view()
    view.scrollTo(box.model().index(place, 0))

    def closed() -> bool:
        """Return whether enough time has passed: Qt ignores clicks within the double-click interval after the list
        opens.
        """
        QTest.mouseClick(view.viewport(), LEFT, pos=view.visualRect(box.model().index(place, 0)).center())
        return not view.isVisible()

    driver.qtbot.waitUntil(closed)


def choosable(box: QComboBox, place: int) -> bool:
    """Return whether an entry of a combo box is not a heading."""
    return bool(box.model().index(place, 0).flags() & Qt.ItemFlag.ItemIsEnabled)


@pytest.mark.quick_cases("Speed", "Algorithm")
@pytest.mark.parametrize("name", ["Speed", "Stop after", "Task", "Algorithm", "Run"])
def test_a_choice_by_mouse_leaves_the_keys_to_the_run_and_one_by_keyboard_stays(driver: Driver, name: str) -> None:
    driver.run(2)
    driver.program.run_manager.new_run(driver.program.workspace.editing.wanted)
    activate(driver)
    before, box = QApplication.focusWidget(), box_of(driver, name)
    place = next(place for place in (1, 0, 2) if place != box.currentIndex() and choosable(box, place))
    click_on(driver, box, place)
    driver.settle()
    assert box.currentIndex() == place
    assert QApplication.focusWidget() is before
    box.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(box, Qt.Key.Key_Down if place == 0 else Qt.Key.Key_Up)
    driver.settle()
    assert QApplication.focusWidget() is box
