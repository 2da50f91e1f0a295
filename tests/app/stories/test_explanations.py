"""Numbers explain themselves, from card to input and back."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from app.panels.explain import ExplainPanel
from app.panels.metrics import MetricsPanel
from grpo_core.explain import Quantity, explain
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


def test_every_card_explains_itself_and_agrees(driver: Driver) -> None:
    driver.run(7)
    cards = driver.program.window.panels["metrics"]
    panel = driver.program.window.panels["explain"]
    assert isinstance(cards, MetricsPanel)
    assert isinstance(panel, ExplainPanel)
    for card in cards.cards[1:]:
        card.explain_current()
        driver.settle()
        step = driver.program.workspace.view.step.step
        assert step is not None
        assert explain(step, Quantity(card.name)).agrees
        assert panel.check.text() == "✓ agrees"
        assert "e-" not in panel.check.text() and "rounding alone" in panel.check.toolTip()


def test_inputs_of_an_explanation_can_be_followed_and_left_again(driver: Driver) -> None:
    driver.run(2)
    panel = driver.program.window.panels["explain"]
    assert isinstance(panel, ExplainPanel)
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
