"""Larger and smaller type: the window stays within its screen, docks do not overlap, and zooming can be undone."""

from __future__ import annotations

from itertools import combinations

import pytest
from PySide6.QtCore import QSize

from app.theme.look import SCALES
from app.widgets.panel import in_window
from app.window.docks import DockTitle
from tests.app.conftest import Driver
from tests.app.teaching.lessons.held import lesson_of

pytestmark = pytest.mark.one_window

SCREEN = QSize(1366, 768)


def zoom(driver: Driver, scale: float) -> None:
    driver.program.look.set(scale=scale)
    driver.settle()
    driver.qtbot.waitUntil(lambda: not driver.program.zooming.busy)
    for _ in range(3):
        driver.settle()


def overlapping(driver: Driver) -> list[tuple[str, str]]:
    seen = {id: dock for id, dock in driver.program.window.docks.items() if not dock.visibleRegion().isEmpty()}
    return [(a, b) for a, b in combinations(seen, 2) if seen[a].geometry().intersects(seen[b].geometry())]


@pytest.mark.parametrize(
    ("layout", "scales"),
    [
        ("Bandit", (1.25, 1.5, 2.5, 1.0)),
        pytest.param("Compare", SCALES, marks=pytest.mark.long),
        pytest.param("Present", SCALES, marks=pytest.mark.long),
    ],
)
def test_the_window_fits_its_screen_in_every_size_of_type(
    driver: Driver, layout: str, scales: tuple[float, ...]
) -> None:
    window = driver.program.window
    window.resize(SCREEN)
    driver.program.layouts.choose(layout)
    driver.run(3)
    for scale in scales:
        zoom(driver, scale)
        assert window.size() == SCREEN, scale
        assert window.minimumSizeHint().height() <= SCREEN.height(), scale
        assert overlapping(driver) == [], scale
        cards = window.docks["metrics"]
        assert cards.height() == cards.row_height, scale


def test_docks_that_were_moved_are_found_again_on_the_way_back(driver: Driver) -> None:
    window = driver.program.window
    window.resize(SCREEN)
    window.tabifyDockWidget(window.docks["policy_bars"], window.docks["step_detail"])
    window.docks["training_history"].hide()
    zoom(driver, 1.1)
    assert window.docks["step_detail"] in window.tabifiedDockWidgets(window.docks["policy_bars"])
    zoom(driver, 2.0)
    assert window.docks["training_history"].isVisible()
    zoom(driver, 1.0)
    assert window.docks["step_detail"] in window.tabifiedDockWidgets(window.docks["policy_bars"])
    assert not window.docks["training_history"].isVisible()


def test_a_layout_that_is_chosen_meanwhile_stays(driver: Driver) -> None:
    window = driver.program.window
    window.resize(SCREEN)
    window.docks["training_history"].hide()
    zoom(driver, 2.0)
    driver.program.layouts.choose("Compare")
    zoom(driver, 1.0)
    assert window.docks["what_if"].isVisible()
    assert window.docks["training_history"].isVisible()


def test_presenting_and_lessons_leave_docks_that_were_moved_where_they_are(driver: Driver) -> None:
    window, presenter = driver.program.window, driver.program.part("teaching").presenter
    window.resize(SCREEN)
    window.docks["training_history"].hide()
    window.resize(1000, 600)  # less room, and the same type
    presenter.start()
    driver.qtbot.waitUntil(lambda: not presenter.settling)
    presenter.stop()
    driver.qtbot.waitUntil(lambda: not presenter.settling)
    driver.program.part("teaching").lessons.player.open(lesson_of("one_update"))
    driver.qtbot.waitUntil(lambda: not driver.program.part("teaching").lessons.player.busy)
    driver.program.part("teaching").lessons.player.leave()
    zoom(driver, 1.0)
    assert not window.docks["training_history"].isVisible()
    assert window.docks["policy_bars"].isVisible()


def test_after_a_lesson_in_large_type_the_docks_have_room(driver: Driver) -> None:
    window, lesson_player = driver.program.window, driver.program.part("teaching").lessons.player
    window.resize(SCREEN)
    lesson_player.open(lesson_of("one_update"))
    driver.qtbot.waitUntil(lambda: not lesson_player.busy)
    zoom(driver, 2.0)
    assert window.docks["lesson"].isVisible()
    lesson_player.leave()
    zoom(driver, 2.0)
    assert not window.docks["lesson"].isVisible()
    assert window.minimumSizeHint().height() <= SCREEN.height()
    assert overlapping(driver) == []


@pytest.mark.parametrize("language", [False, True])
def test_no_panel_has_a_second_title_after_large_type_and_back(driver: Driver, language: bool) -> None:
    window = driver.program.window
    window.resize(1920, 1080)
    if language:
        driver.open_example()
    driver.program.layouts.reset()
    zoom(driver, 2.0)
    zoom(driver, 1.0)
    tabbed = [dock for dock in window.docks.values() if in_window(dock) and window.tabifiedDockWidgets(dock)]
    assert tabbed and not [dock.windowTitle() for dock in tabbed if isinstance(dock.titleBarWidget(), DockTitle)]
