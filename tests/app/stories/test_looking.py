"""Looking around with keys and mouse: panels, pictures, tables, and explanations from card to input and back."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.panel_registry import EXPLAIN, METRICS
from app.workspace.cursor import Stage
from grpo_core.explain import Quantity, explain
from tests.app.conftest import Driver
from tests.app.geometry import pixel_at
from tests.app.stories.hands import activate, panel, panel_of, press

pytestmark = pytest.mark.one_window

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


def test_explain_and_the_formula_show_the_same_sample(driver: Driver) -> None:
    # first in its window, where no number has been explained yet
    driver.run(3)
    workspace, pipeline = driver.program.workspace, panel(driver, "pipeline")
    explain, table = panel(driver, "explain"), panel(driver, "step_detail").table

    def sample() -> tuple[str, str]:
        driver.settle()
        named = re.search(r"sample (\d+)", pipeline.which.text())
        assert named is not None
        return named.group(1), explain.heading.text().partition(",")[0].rpartition(" ")[2]

    workspace.explain(Quantity("ratio", passed=3, row=4, token=0))
    assert sample() == ("5", "5"), "what is explained is selected"
    table.select_row(None)
    cell = table.visualRect(table.model().index(1, 0)).center()
    QTest.mouseClick(table.viewport(), LEFT, pos=cell)
    assert workspace.selection.row is not None and workspace.selection.row != 4
    assert sample() == (str(workspace.selection.row + 1),) * 2, "what is selected is explained"
    workspace.show_stage(Stage.UPDATE, 1)
    driver.settle()
    assert workspace.quantity is not None and workspace.quantity.passed == 1
    assert explain.back.isHidden(), "it is still the first number"


def test_everything_with_a_number_is_selected_by_a_click_and_explained_by_a_double_click(driver: Driver) -> None:
    driver.run(5)
    explain, workspace = panel(driver, "explain"), driver.program.workspace

    def told() -> str:
        driver.settle()
        quantity, workspace.quantity = workspace.quantity, None
        assert quantity is not None
        assert explain.check.text() == "✓ agrees" or explain.check.isHidden()
        return quantity.name

    card = panel(driver, "metrics").cards[2]
    QTest.mouseClick(card, LEFT)
    assert (workspace.quantity, card.hasFocus()) == (None, True)
    QTest.mouseDClick(card, LEFT)
    assert told() == "kl"
    term = next(term for term in panel(driver, "pipeline").strip.buttons if term.term.key == "ratio")
    QTest.mouseClick(term, LEFT)
    assert (workspace.quantity, term.hasFocus()) == (None, True)
    QTest.mouseDClick(term, LEFT)
    assert told() == "ratio"
    QTest.keyClick(term, Qt.Key.Key_Return)
    assert told() == "ratio"
    table = panel(driver, "step_detail").table
    cell = table.visualRect(table.model().index(2, 3)).center()
    QTest.mouseClick(table.viewport(), LEFT, pos=cell)
    assert workspace.selection.row is not None
    QTest.mouseDClick(table.viewport(), LEFT, pos=cell)
    assert told()
    tokens = panel(driver, "token_inspector")
    tokens.grid.setFocus()
    QTest.keyClick(tokens.grid, Qt.Key.Key_Down)
    QTest.keyClick(tokens.grid, Qt.Key.Key_Return)
    assert told()
    plot = panel(driver, "policy_bars").plot
    plot.setFocus()
    QTest.keyClick(plot, Qt.Key.Key_Right)
    QTest.keyClick(plot, Qt.Key.Key_Return)
    assert told() == "new_probability"


def test_an_explanation_that_is_asked_for_is_brought_to_the_front(driver: Driver) -> None:
    driver.run(1)
    window = driver.program.window
    window.show_layout("Compare")
    panel(driver, "step_detail")
    assert window.docks["explain"].isVisible() and not window.panels["explain"].seen, "behind a tab"
    QTest.mouseDClick(panel(driver, "metrics").cards[2], LEFT)
    driver.qtbot.waitUntil(lambda: window.panels["explain"].seen)


def test_without_its_dock_an_explanation_that_is_asked_for_comes_as_a_sheet(driver: Driver) -> None:
    driver.run(1)
    window = driver.program.window
    window.docks["explain"].hide()
    QTest.mouseDClick(panel(driver, "metrics").cards[2], LEFT)
    assert window.explain_homes.is_open and window.panels["explain"].seen


def test_e_explains_what_has_the_focus(driver: Driver) -> None:
    driver.run(5)
    activate(driver)
    card = panel(driver, "metrics").cards[4]
    card.setFocus()
    driver.settle()
    press(driver, Qt.Key.Key_E)
    driver.settle()
    quantity = driver.program.workspace.quantity
    assert quantity is not None
    assert quantity.name == "entropy"
    assert "Entropy" in panel(driver, "explain").heading.text()


def test_a_bar_that_is_clicked_is_chosen_everywhere(driver: Driver) -> None:
    driver.run(5)
    step = driver.shown_step
    action = int(step.tokens[3, 0])
    plot = panel(driver, "policy_bars").plot
    place = pixel_at(plot, action, 0.05).toPoint()
    QTest.mouseClick(plot, LEFT, pos=place)
    driver.settle()
    selection = driver.program.workspace.selection
    assert selection.action == action
    assert selection.row is not None
    assert int(step.tokens[selection.row, 0]) == action
    assert panel(driver, "step_detail").table.current_cell()[0] == selection.row


def test_t_turns_a_picture_into_its_table_and_back(driver: Driver) -> None:
    driver.run(3)
    activate(driver)
    twin = panel(driver, "policy_bars").twin
    for shown in (True, False):
        driver.settle()
        press(driver, Qt.Key.Key_T)
        assert twin.shows_table is shown


def test_tab_reaches_every_panel_that_can_be_seen(driver: Driver) -> None:
    driver.run(2)
    activate(driver)
    met: set[str | None] = set()
    for _ in range(200):
        press(driver, Qt.Key.Key_Tab)
        met.add(panel_of(QApplication.focusWidget()))
    seen = {name for name, one in driver.program.window.panels.items() if one.seen}
    assert seen - met - {"explain"} == set()


def test_every_card_explains_itself_and_agrees(driver: Driver) -> None:
    driver.run(7)
    panel = driver.program.window.panels.of(EXPLAIN)
    for card in driver.program.window.panels.of(METRICS).cards[1:]:
        card.explain_current()
        driver.settle()
        assert explain(driver.shown_step, Quantity(card.name)).agrees
        assert panel.check.text() == "✓ agrees"
        assert "e-" not in panel.check.text() and "rounding alone" in panel.check.toolTip()


def test_inputs_of_an_explanation_can_be_followed_and_left_again(driver: Driver) -> None:
    driver.run(2)
    panel = driver.program.window.panels.of(EXPLAIN)
    driver.program.workspace.explain(Quantity("advantage", row=2, token=0))
    driver.settle()
    title = panel.heading.text()
    panel.findChild(QWidget, "door").click()  # type: ignore[union-attr]
    driver.settle()
    assert panel.heading.text() != title
    panel.back.click()
    driver.settle()
    assert panel.heading.text() == title


def test_one_selection_for_all_panels(driver: Driver) -> None:
    driver.run(3)
    window = driver.program.window
    table = window.panels["step_detail"].table  # type: ignore[attr-defined]
    table.selected.emit(4)
    driver.settle()
    assert driver.program.workspace.selection.row == 4
    assert window.panels["pipeline"].which.text() == "sample 5; L sums all"  # type: ignore[attr-defined]
    assert table.current_cell()[0] == 4
