"""One panel fills the window in larger type, and every dock returns."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTabBar

from app.panel_registry import KL_OVER_BETA, STEP_DETAIL
from app.teaching.presenting.maximize import scale_alone
from tests.app.conftest import Driver
from tests.app.stories.hands import activate, panel, press
from tests.app.teaching.presenting.hands import places

pytestmark = pytest.mark.one_window

Key = Qt.Key


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


@pytest.mark.long
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
        ((1366, 768), "policy_bars", 1.0, 1.5),
        ((1366, 768), "controls", 1.0, 1.0),
        ((1366, 768), "policy_bars", 2.0, 2.0),
        ((1920, 1080), "step_detail", 1.0, 1.5),
    ],
)
def test_a_panel_alone_is_enlarged_as_far_as_it_and_the_toolbar_have_room(
    size: tuple[int, int], id: str, scale: float, alone: float
) -> None:
    assert scale_alone(QSize(*size), id, scale) == alone


@pytest.mark.quick_cases("False")
@pytest.mark.parametrize("by_key", [False, True])
def test_a_tab_that_was_brought_to_the_front_is_the_panel_that_is_maximized(driver: Driver, by_key: bool) -> None:
    activate(driver)
    window, maximizer = driver.program.window, driver.program.part("teaching").presenter.maximizer
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
    assert driver.program.part("teaching").presenter.maximizer.panel is None
    driver.program.part("teaching").presenter.maximize(None)
    assert places(driver) == wanted


def test_without_a_panel_in_focus_maximizing_says_what_to_do(driver: Driver) -> None:
    driver.program.transport.runs.setFocus()
    driver.program.actions["maximize_panel"].trigger()
    assert any("No panel is in focus" in text for text in driver.messages)


@pytest.mark.long
def test_a_panel_that_was_just_opened_is_the_one_that_is_maximized(driver: Driver) -> None:
    activate(driver)
    window, maximizer = driver.program.window, driver.program.part("teaching").presenter.maximizer
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
