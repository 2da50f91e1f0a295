"""The two places of Explain: a sheet at the number being explained, or a dock when it is pinned."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.panel_registry import EXPLAIN, TOKEN_INSPECTOR
from app.panels.explain import ExplainPanel
from app.panels.tokens.panel import TokenInspectorPanel
from app.window.explain_homes import ExplainHomes, placed
from grpo_core.explain import Quantity
from tests.app.conftest import Driver
from tests.core.lm_steps import lm_run

pytestmark = pytest.mark.one_window

ROOM = QRect(10, 90, 1340, 660)


@pytest.mark.parametrize(
    ("x", "y", "width", "height"), [(x, y, w, 20) for x, y, w in product((20, 600, 1300), (100, 400, 720), (16, 400))]
)
@pytest.mark.parametrize("size", [QSize(430, 260), QSize(430, 500), QSize(430, 640)])
def test_a_sheet_never_covers_the_number_that_it_explains(x: int, y: int, width: int, height: int, size: QSize) -> None:
    anchor = QRect(x, y, width, height)
    sheet = placed(ROOM, anchor, size, 8, 150)
    assert ROOM.contains(sheet)
    assert not sheet.intersects(anchor)
    assert sheet.width() == size.width()


def test_where_there_is_no_room_beside_the_number_the_sheet_is_lower() -> None:
    sheet = placed(QRect(0, 0, 400, 300), QRect(0, 200, 400, 20), QSize(400, 260), 8, 100)
    assert sheet == QRect(0, 0, 400, 192)


@pytest.fixture
def language(driver: Driver, tmp_path: Path) -> Driver:
    path = tmp_path / "arithmetic.grpo"
    lm_run(path, 3)
    driver.program.run_manager.open(path)
    driver.program.window.show_layout("Language model")
    driver.program.window.activateWindow()
    driver.qtbot.waitUntil(driver.program.window.isActiveWindow)
    driver.settle()
    return driver


def homes(driver: Driver) -> ExplainHomes:
    return driver.program.window.explain_homes


def asked(driver: Driver, key: Qt.Key = Qt.Key.Key_Return) -> TokenInspectorPanel:
    """Explain the inspector's selected token with a key."""
    inspector = driver.program.window.panels.of(TOKEN_INSPECTOR)
    inspector.grid.setFocus()
    driver.settle()
    QTest.keyClick(inspector.grid, key)
    driver.settle()
    return inspector


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_E])
def test_a_key_opens_the_sheet_at_the_number_and_esc_gives_the_keyboard_back(language: Driver, key: Qt.Key) -> None:
    inspector = asked(language, key)
    sheet, panel = homes(language).sheet, language.program.window.panels.of(EXPLAIN)
    assert homes(language).is_open and panel.seen and sheet.isAncestorOf(panel)
    box = inspector.grid.explained_box()
    assert not sheet.geometry().intersects(
        QRect(inspector.grid.mapTo(language.program.window, box.topLeft()), box.size())
    )
    focus = QApplication.focusWidget()
    assert focus is not None and sheet.isAncestorOf(focus)
    QTest.keyClick(focus, Qt.Key.Key_Escape)
    assert not homes(language).is_open
    assert QApplication.focusWidget() is inspector.grid


def test_an_input_is_followed_within_the_sheet(language: Driver) -> None:
    asked(language)
    panel = language.program.window.panels.of(EXPLAIN)
    title = panel.heading.text()
    focus = QApplication.focusWidget()
    assert focus is not None
    QTest.keyClick(focus, Qt.Key.Key_Space)
    language.settle()
    assert panel.heading.text() != title and homes(language).is_open
    panel.back.click()
    language.settle()
    assert panel.heading.text() == title


def test_the_sheet_goes_with_the_selection(language: Driver) -> None:
    inspector = asked(language)
    title = language.program.window.panels.of(EXPLAIN).heading.text()
    QTest.keyClick(inspector.grid, Qt.Key.Key_Down)
    language.settle()
    assert homes(language).is_open
    assert language.program.window.panels.of(EXPLAIN).heading.text() != title


def test_pinned_it_is_a_dock_and_unpinned_a_sheet_again(language: Driver) -> None:
    inspector, pin = asked(language), language.program.actions["pin_explain"]
    panel: ExplainPanel = language.program.window.panels.of(EXPLAIN)
    pin.trigger()
    language.settle()
    dock = language.program.window.docks[EXPLAIN.id]
    assert homes(language).is_pinned and not homes(language).is_open
    assert dock.isAncestorOf(panel) and panel.seen
    inspector.grid.explain_current()
    language.settle()
    assert not homes(language).is_open
    pin.trigger()
    inspector.grid.explain_current()
    language.settle()
    assert homes(language).is_open and homes(language).sheet.isAncestorOf(panel)


def test_a_dock_that_is_shown_from_the_menu_has_its_panel(language: Driver) -> None:
    asked(language)
    language.program.window.toggle(EXPLAIN.id)
    language.settle()
    dock = language.program.window.docks[EXPLAIN.id]
    assert dock.isAncestorOf(language.program.window.panels.of(EXPLAIN))
    assert not homes(language).is_open


def test_a_layout_that_holds_the_panel_has_it_pinned(driver: Driver) -> None:
    driver.run(1)
    assert not homes(driver).is_pinned
    driver.program.window.show_layout("Compare")
    driver.program.workspace.explain(Quantity("loss"))
    driver.settle()
    assert homes(driver).is_pinned and not homes(driver).is_open


def test_the_sheet_is_inside_the_window_if_the_keyboard_is_in_a_panel_behind_another_tab(language: Driver) -> None:
    window = language.program.window
    window.panels["evolution"].focus_picture()
    language.program.actions["panel.kl_over_beta"].trigger()
    language.settle()
    language.program.actions["explain"].trigger()
    language.settle()
    assert homes(language).is_open and window.rect().contains(homes(language).sheet.geometry())
