"""Looking around with keys and mouse: panels, pictures, tables, explanations."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from tests.app.conftest import Driver
from tests.app.stories.hands import activate, panel, panel_of, press

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


def test_cards_cells_tokens_and_bars_explain_themselves_when_clicked(driver: Driver) -> None:
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
    assert told() == "kl"
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
    step = driver.program.workspace.view.step.step
    assert step is not None
    action = int(step.tokens[3, 0])
    plot = panel(driver, "policy_bars").plot
    place = plot.pixel_at(action, 0.05).toPoint()
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
