"""A film that waits for the user continues on Enter, on any key that nothing else uses, or on a click."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.clock import ManualClock
from app.controllers.first_steps import LEARN
from app.panel_registry import POLICY_BARS, TOKEN_INSPECTOR
from app.plotting.bar_chart import BarChart
from app.workspace.cursor import Stage
from app.workspace.film import FilmClock
from app.workspace.player import Mode
from tests.app.conftest import Driver
from tests.core.lm_steps import lm_run

pytestmark = pytest.mark.one_window
Key, NONE, CONTROL = Qt.Key, Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def waiting(driver: Driver, clock: ManualClock) -> FilmClock:
    """Pause a film in its first stage, with its picture in front and focused."""
    player = driver.program.player
    player.staged = True
    player.step()
    driver.qtbot.waitUntil(lambda: player.film.playing)
    clock.advance(100)
    player.pause()
    driver.rest()
    driver.program.window.show_panel(POLICY_BARS).focus_picture()
    return player.film


@pytest.fixture
def chart(driver: Driver) -> BarChart:
    return driver.program.window.panels.of(POLICY_BARS).plot


@pytest.mark.parametrize("key", [Key.Key_X, Key.Key_7, Key.Key_Q, Key.Key_Return, Key.Key_Enter, Key.Key_PageDown])
def test_any_key_of_no_other_use_and_enter_go_on(waiting: FilmClock, chart: BarChart, key: Qt.Key) -> None:
    assert waiting.paused and chart.hasFocus()
    QTest.keyClick(chart, key)
    assert waiting.playing


@pytest.mark.parametrize("key", [Key.Key_Left, Key.Key_Up, Key.Key_Return])
def test_what_the_focused_widget_would_use_goes_on_where_none_has_the_focus(
    driver: Driver, waiting: FilmClock, chart: BarChart, key: Qt.Key
) -> None:
    chart.clearFocus()
    QTest.keyClick(driver.program.window, key)
    assert waiting.playing


@pytest.mark.parametrize(
    ("key", "modifiers"),
    [
        (Key.Key_X, CONTROL),
        (Key.Key_X, Qt.KeyboardModifier.AltModifier),
        (Key.Key_Shift, NONE),
        (Key.Key_Escape, NONE),
        (Key.Key_F9, NONE),
        (Key.Key_Tab, NONE),
        (Key.Key_Right, NONE),
        (Key.Key_E, NONE),
    ],
)
def test_keys_with_a_meaning_of_their_own_leave_it_where_it_is(
    waiting: FilmClock, chart: BarChart, key: Qt.Key, modifiers: Qt.KeyboardModifier
) -> None:
    QTest.keyClick(chart, key, modifiers)
    assert waiting.paused


def test_enter_elsewhere_than_on_the_film_keeps_its_meaning(driver: Driver, waiting: FilmClock) -> None:
    elsewhere = driver.program.transport.speed
    elsewhere.setFocus()
    QTest.keyClick(elsewhere, Key.Key_Space)
    popup = QApplication.activePopupWidget()
    assert waiting.paused and isinstance(popup, QWidget)
    QTest.keyClick(popup, Key.Key_Escape)
    assert waiting.paused


def test_a_click_on_the_film_goes_on_and_a_drag_does_not(waiting: FilmClock, chart: BarChart) -> None:
    middle = chart.rect().center()
    QTest.mousePress(chart, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseRelease(chart, Qt.MouseButton.LeftButton, pos=middle + QPoint(60, 0))
    assert waiting.paused
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=middle)
    assert waiting.playing


def test_tokens_that_are_shown_as_a_film_go_on_likewise(driver: Driver, clock: ManualClock, tmp_path: Path) -> None:
    player, window = driver.program.player, driver.program.window
    lm_run(tmp_path / "arithmetic.grpo", 2)
    driver.program.run_manager.open(tmp_path / "arithmetic.grpo")
    driver.settle()
    panel = window.show_panel(TOKEN_INSPECTOR)
    player.staged = True
    driver.program.workspace.move_to(1)
    player.stage()
    panel.focus_picture()
    for goes_on in (
        lambda: QTest.mouseClick(panel.grid.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(3, 3)),
        lambda: QTest.keyClick(panel.grid, Key.Key_Return),
        lambda: QTest.keyClick(panel.grid, Key.Key_X),
    ):
        player.pause()
        assert player.film.paused
        goes_on()
        assert player.film.playing
    player.rest()


@pytest.mark.parametrize("key", [Key.Key_Return, Key.Key_X, None], ids=["Enter", "any key", "a click"])
def test_the_first_update_that_is_shown_slowly_ends_at_enter_any_key_and_a_click_too(
    driver: Driver, clock: ManualClock, key: Qt.Key | None
) -> None:
    program = driver.program
    program.player.staged = True
    program.first_steps.begin(LEARN)
    driver.qtbot.waitUntil(lambda: driver.head == 1 and program.player.film.whole)
    chart = program.window.panels.of(POLICY_BARS).plot
    QTest.keyClick(chart, Key.Key_Shift)
    assert program.player.film.whole, "Shift alone is on the way to another key"
    if key is None:
        QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=chart.rect().center())
    else:
        QTest.keyClick(chart, key)
    assert not program.player.film.playing and program.workspace.view.cursor.stage is Stage.UPDATE
    driver.qtbot.waitUntil(lambda: program.player.mode is Mode.COMPUTING)  # the tour continues
    assert program.first_steps.playing is LEARN, "it has not ended the tour"
    program.player.pause()
    driver.rest()
