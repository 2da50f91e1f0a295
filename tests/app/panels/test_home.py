"""Home: the latest runs and the examples as pictures that open them, and buttons for starting."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.controllers.first_steps import EXPERIENCES
from app.examples import TITLES, example
from app.panel_registry import HOME
from app.panels.home.buttons import POINTS, shortened
from app.panels.home.panel import HomePanel
from tests.app.conftest import Driver


@pytest.fixture
def home(driver: Driver) -> HomePanel:
    driver.run(12)
    driver.program.run_manager.new_run(driver.program.workspace.view.next_settings)
    driver.run(3)
    panel: HomePanel = driver.program.window.show_panel(HOME)
    driver.qtbot.waitUntil(lambda: bool(panel.cards))
    driver.settle()
    return panel


def test_each_run_with_an_update_and_each_example_has_a_picture(driver: Driver, home: HomePanel) -> None:
    first = driver.program.workspace.runs[0]
    shown = {card.preview.path: card.preview for card in home.cards}
    assert shown[first.path].steps == 12 and shown[first.path].title == first.title
    assert np.array_equal(shown[first.path].rewards, first.series["reward_mean"].values)
    assert {example(name) for name in TITLES} < set(shown)
    assert not home.none.isVisible()


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return], ids=["space", "return"])
def test_a_picture_opens_its_run_by_mouse_and_by_keyboard(driver: Driver, home: HomePanel, key: Qt.Key) -> None:
    card = next(card for card in home.cards if card.preview.path == example())
    card.setFocus()
    QTest.keyClick(card, key)
    driver.qtbot.waitUntil(lambda: getattr(driver.program.workspace.run, "path", None) == example())


def test_its_buttons_begin_what_the_first_screen_offers(driver: Driver, home: HomePanel) -> None:
    assert [button.text() for button in home.begin] == [one.name for one in EXPERIENCES]
    QTest.mouseClick(home.begin[0], Qt.MouseButton.LeftButton)
    assert driver.program.first_steps.playing is not None


def test_in_a_new_profile_it_says_that_runs_save_themselves(driver: Driver) -> None:
    panel: HomePanel = driver.program.window.show_panel(HOME)
    driver.qtbot.waitUntil(lambda: bool(panel.cards))
    assert panel.none.isVisible()
    assert len(panel.cards) == len(TITLES)


def test_a_run_written_meanwhile_is_there_when_the_panel_comes_to_the_front_again(
    driver: Driver, home: HomePanel
) -> None:
    before = len(home.cards)
    driver.program.window.docks["policy_bars"].raise_()
    driver.program.run_manager.new_run(driver.program.workspace.view.next_settings)
    driver.run(1)
    driver.program.window.show_panel(HOME)
    driver.qtbot.waitUntil(lambda: len(home.cards) == before + 1)


@pytest.mark.parametrize("length", [0, 1, POINTS, 10 * POINTS + 3])
def test_a_long_curve_is_drawn_by_means_of_parts(length: int) -> None:
    values = np.arange(length, dtype=float)
    short = shortened(np.append(values, np.nan))
    assert len(short) == min(length, POINTS)
    assert (np.diff(short) > 0).all()
    assert not length or abs(short.mean() - values.mean()) < 2, "parts differ by one value in length"
