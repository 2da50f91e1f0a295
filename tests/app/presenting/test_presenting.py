"""A class looks on: full screen, one panel, a black screen, a remote's keys; and afterwards everything as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.panels.base import in_window
from app.panels.registry import KL_OVER_BETA, STEP_DETAIL
from app.plotting.place_chart import PlaceChart
from app.plotting.plot import Plot
from app.presenting import screens
from app.presenting.counter import seen_controls
from app.presenting.maximize import scale_alone
from app.settings.preferences import load_preferences
from app.window.saved_docks import put_back
from app.workspace.cursor import Stage
from tests.app.conftest import Driver, make, take_down
from tests.app.geometry import box_of
from tests.app.painted import painted_words
from tests.app.presenting.hands import places, settle, stage_of, start
from tests.app.stories.hands import activate, drag, panel, press

Key = Qt.Key
SIZES = [(1024, 768), pytest.param((1366, 768), marks=pytest.mark.long), (1920, 1080)]


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
    assert not driver.program.presenter.blank.isVisible()
    press(driver, Key.Key_Period)
    driver.rest()
    assert driver.head == 4


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
    blank = driver.program.presenter.blank
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
    blank = driver.program.presenter.blank
    driver.program.presenter.toggle_blank()
    assert blank.grab().toImage().pixelColor(5, 5) == Qt.GlobalColor.black
    held = QKeyEvent(QKeyEvent.Type.KeyPress, Key.Key_B, Qt.KeyboardModifier.NoModifier, "b", autorep=True)
    QApplication.sendEvent(blank, held)
    assert blank.isVisible()
    QTest.mouseClick(blank, Qt.MouseButton.LeftButton)
    assert not blank.isVisible()


def test_a_panel_is_maximized_and_every_dock_comes_back_exactly(driver: Driver) -> None:
    window = driver.program.window
    driver.run(2)
    window.resize(1280, 720)
    driver.program.layouts.choose("Bandit")
    panel(driver, "kl_over_beta")  # a tab behind the first is in front
    driver.settle()
    activate(driver)
    before = places(driver)
    for _ in range(2):
        press(driver, Key.Key_F12)
        driver.settle()
        shown = [id for id, dock in window.docks.items() if dock.isVisible()]
        assert shown == ["policy_bars"]
        assert window.docks["policy_bars"].width() > window.width() * 0.95
        assert driver.program.actions["maximize_panel"].isChecked()
        press(driver, Key.Key_F12)
        driver.settle()
        driver.qtbot.waitUntil(lambda: places(driver) == before, timeout=5000)
    assert not driver.program.actions["maximize_panel"].isChecked()


def test_a_panel_alone_has_larger_type_which_is_no_preference(driver: Driver) -> None:
    driver.program.window.resize(1366, 768)
    driver.program.look.set(scale=1.1)
    activate(driver)
    press(driver, Key.Key_F12)
    driver.settle()
    assert driver.program.look.scale == 1.5
    transport = driver.program.transport
    assert transport.runs.isVisible() and transport.runs.geometry().right() < transport.width()
    press(driver, Key.Key_F12)
    driver.settle()
    assert (driver.program.look.scale, driver.program.preferences.current.scale) == (1.1, 1.1)
    press(driver, Key.Key_F12)
    driver.program.layouts.choose("Compare")
    assert driver.program.look.scale == 1.1


@pytest.mark.parametrize(
    ("size", "id", "scale", "alone"),
    [
        ((1366, 768), "policy_bars", 1.0, 1.5), ((1366, 768), "controls", 1.0, 1.0),
        ((1366, 768), "policy_bars", 2.0, 2.0), ((1920, 1080), "step_detail", 1.0, 1.5),
    ],
)  # fmt: skip
def test_a_panel_alone_is_enlarged_as_far_as_it_and_the_toolbar_have_room(
    size: tuple[int, int], id: str, scale: float, alone: float
) -> None:
    assert scale_alone(QSize(*size), id, scale) == alone


@pytest.mark.parametrize("by_key", [False, True])
def test_a_tab_that_was_brought_to_the_front_is_the_panel_that_is_maximized(driver: Driver, by_key: bool) -> None:
    activate(driver)
    window, maximizer = driver.program.window, driver.program.presenter.maximizer
    bars = [bar for bar in window.findChildren(QTabBar) if bar.isVisible()]
    bar = next(bar for bar in bars if bar.tabText(0) == window.docks["policy_bars"].windowTitle())
    assert bar.accessibleName() == "Panels"
    if by_key:
        bar.setFocus()
        press(driver, Key.Key_Right)
    else:
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(1).center())
    driver.settle()
    press(driver, Key.Key_F12)
    assert maximizer.panel == KL_OVER_BETA.id


def test_a_layout_chosen_while_a_panel_is_maximized_counts(driver: Driver) -> None:
    panel(driver, "policy_bars").focus_picture()
    driver.program.actions["maximize_panel"].trigger()
    driver.program.layouts.choose("Compare")
    driver.settle()
    wanted = places(driver)
    assert driver.program.presenter.maximizer.panel is None
    driver.program.presenter.maximize(None)
    assert places(driver) == wanted


def test_without_a_panel_in_focus_maximizing_says_what_to_do(driver: Driver) -> None:
    driver.program.transport.runs.setFocus()
    driver.program.actions["maximize_panel"].trigger()
    assert any("No panel is in focus" in text for text in driver.messages)


def test_the_ring_follows_the_pointer_and_lets_clicks_through(driver: Driver) -> None:
    window, ring = driver.program.window, driver.program.presenter.ring
    driver.program.actions["present.ring"].trigger()
    handle = window.windowHandle()
    QTest.mouseMove(handle, QPoint(300, 200))
    driver.qtbot.waitUntil(ring.isVisible)
    assert (ring.geometry().center() - QPoint(300, 200)).manhattanLength() <= 2
    assert ring.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    image = ring.grab().toImage()
    middle = image.height() // 2
    dark = [x for x in range(image.width()) if image.pixelColor(x, middle).lightness() < 80]
    assert dark
    assert abs(max(dark) - min(dark)) > 50
    driver.program.actions["present.ring"].trigger()
    QTest.mouseMove(handle, QPoint(100, 100))
    assert not ring.isVisible()


@pytest.mark.parametrize("size", [(800, 800), *SIZES])
def test_the_counter_covers_no_control_and_no_plot_until_a_hand_moves_it(driver: Driver, size: tuple[int, int]) -> None:
    driver.run(2)
    start(driver)
    window, presenter = driver.program.window, driver.program.presenter
    window.setWindowState(Qt.WindowState.WindowNoState)
    window.resize(*size)
    driver.program.look.set("projector", screens.fitting_scale(window.rect()))
    settle(driver)
    presenter.arrange_later()
    settle(driver)
    counter, row = presenter.counter, panel(driver, "pipeline")
    driver.qtbot.waitUntil(
        lambda: not any(map(counter.geometry().intersects, seen_controls(window, counter))), timeout=5000
    )
    plots = [part for part in window.findChildren(QWidget) if isinstance(part, Plot | PlaceChart)]
    for plot in filter(in_window, plots):
        assert not counter.geometry().intersects(box_of(plot)), plot.title
    if size[0] > 1024:  # beside the formula, where there is room
        middle = row.mapTo(window, row.rect().center()).y()
        driver.qtbot.waitUntil(lambda: abs(counter.geometry().center().y() - middle) <= 2)
    assert window.rect().contains(presenter.counter.geometry())


@pytest.mark.parametrize("size", SIZES)
def test_every_word_in_a_plot_is_at_least_two_percent_of_the_height(driver: Driver, size: tuple[int, int]) -> None:
    driver.run(5)
    start(driver)
    window = driver.program.window
    window.setWindowState(Qt.WindowState.WindowNoState)
    window.resize(*size)
    driver.program.look.set("projector", screens.fitting_scale(window.rect()))
    settle(driver)
    driver.program.presenter.arrange_later()
    settle(driver)
    plots = [plot for plot in window.findChildren(QWidget) if isinstance(plot, Plot | PlaceChart)]
    words = [word for plot in plots if in_window(plot) for word in painted_words(plot)]
    texts = {word.text for word in words}
    assert {"entropy", "Samples", "0"} <= texts and len(words) > 30
    assert [word for word in words if word.pixels < 0.02 * size[1]] == []
    driver.program.presenter.stop()
    settle(driver)
    assert driver.program.look.legible == 0


def test_a_maximized_window_becomes_a_plain_one_before_it_fills_a_screen(driver: Driver) -> None:
    window = driver.program.window
    window.showMaximized()
    driver.settle()
    assert window.isMaximized()
    screens.fill(window, window.screen())
    driver.settle()
    assert window.windowState() & ~Qt.WindowState.WindowActive == Qt.WindowState.WindowFullScreen


def test_the_counter_says_update_and_stage_and_goes_where_it_is_dragged(driver: Driver) -> None:
    driver.run(12)
    start(driver)
    counter, workspace = driver.program.presenter.counter, driver.program.workspace
    driver.settle()
    assert counter.accessibleDescription() == "12, Update, pass 4/4"
    workspace.show_stage(Stage.NORMALIZE)
    driver.settle()
    assert counter.accessibleDescription() == "12, Normalize"
    assert counter.height() > driver.program.window.height() / 12
    drag(counter, QPoint(20, 20), QPoint(320, -100))
    moved = counter.pos()
    assert moved.x() > 250
    workspace.move_to(3)
    driver.settle()
    assert counter.pos() == moved
    drag(counter, QPoint(20, 20), QPoint(-5000, 5000))
    assert driver.program.window.rect().contains(counter.geometry())
    driver.program.actions["present.counter"].trigger()
    assert not counter.isVisible()


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
    """The docks that are visible in a state of the window."""
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


def test_a_panel_that_was_just_opened_is_the_one_that_is_maximized(driver: Driver) -> None:
    activate(driver)
    window, maximizer = driver.program.window, driver.program.presenter.maximizer
    window.show_panel(KL_OVER_BETA)
    driver.settle()
    driver.program.actions["maximize_panel"].trigger()
    assert maximizer.panel == KL_OVER_BETA.id
    driver.program.actions["maximize_panel"].trigger()
    assert maximizer.panel is None
    window.panels.of(STEP_DETAIL).table.setFocus()
    driver.settle()
    driver.program.actions["maximize_panel"].trigger()
    assert maximizer.panel == STEP_DETAIL.id, "the focus has moved since"
