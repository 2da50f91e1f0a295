"""The comparison in the window: seeds stay chosen, exploding numbers are drawn, and a language model has a note on
what races.
"""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QPushButton,
    QTableView,
    QToolButton,
    QWidget,
)

from app.experiments.comparison import ComparisonPanel
from app.experiments.race.measures import MEASURES
from app.experiments.race.plan import base_of
from app.panel_registry import COMPARISON
from app.plotting.plot import Plot
from grpo_core.config import Settings
from tests.app.conftest import Driver
from tests.app.panels.conftest import Front
from tests.app.panels.experiments.race.hands import GRPO

pytestmark = pytest.mark.one_window


@pytest.fixture
def panel(driver: Driver, front: Front) -> ComparisonPanel:
    """A small race in the window."""
    panel = driver.program.window.panels["comparison"]
    assert isinstance(panel, ComparisonPanel)
    panel.choices.seeds.setCurrentIndex(0)
    panel.choices.updates.setCurrentIndex(0)
    front(COMPARISON)
    settle(driver, panel)
    return panel


def settle(driver: Driver, panel: ComparisonPanel) -> None:
    driver.qtbot.waitUntil(lambda: not (panel.controller.busy or panel.settling))
    driver.settle()


def test_a_chosen_seed_stays_while_nobody_races_and_what_was_shown_is_dimmed(
    driver: Driver, panel: ComparisonPanel
) -> None:
    panel.pick("RLOO")
    assert panel.controller.results is not None
    assert panel.chosen == panel.controller.results.lanes["RLOO"].median()
    assert panel.run.seed.text().endswith("median")
    panel.run.seed.setValue(3)
    assert (panel.chosen, panel.lane) == (3, "RLOO")
    panel.choices.entries.choose(())
    panel.choices.entries.changed.emit()
    settle(driver, panel)
    assert "choose at least one" in panel.says.text()
    assert panel.plot.frame.opacity() < 1
    assert not panel.standing.isEnabled()
    panel.choices.entries.usual.trigger()
    settle(driver, panel)
    assert panel.plot.frame.opacity() == 1 and panel.standing.table.rowCount() == 6
    assert (panel.chosen, panel.lane, panel.run.seed.value()) == (3, "RLOO", 3)
    panel.pick(GRPO)
    assert panel.place is None


def test_numbers_that_explode_are_drawn_as_far_as_there_are_any_and_all_has_a_name(
    driver: Driver, panel: ComparisonPanel
) -> None:
    driver.program.workspace.editing.edit(
        {
            "optimizer.learning_rate": 1e3,
            "learner.temperature": 0.01,
            "task.landscape": "custom",
            "task.custom": (1e9,) * 9 + (-1e9,),
        },
        "Too much",
    )
    driver.settle()
    settle(driver, panel)
    assert panel.controller.results is not None and panel.controller.results.complete
    for index in range(len(MEASURES)):
        panel.choices.measure.setCurrentIndex(index)
        driver.settle()
    assert panel.summary(driver.program.workspace.view)
    for widget in panel.findChildren(QWidget):
        if isinstance(widget, (QPushButton, QToolButton, QCheckBox, QComboBox, QAbstractSpinBox, QTableView, Plot)):
            assert widget.accessibleName() or getattr(widget, "text", str)(), widget
    assert "the best first" in panel.plot.accessibleDescription()
    assert "the best first" in panel.standing.accessibleDescription()


def test_a_language_model_is_told_that_the_bandit_races(language: Driver, front: Front) -> None:
    panel = language.program.window.panels["comparison"]
    assert isinstance(panel, ComparisonPanel)
    panel.choices.seeds.setCurrentIndex(0)
    panel.choices.updates.setCurrentIndex(0)
    assert front(COMPARISON) is panel
    settle(language, panel)
    assert "A race runs on the bandit" in panel.says.text()
    assert panel.controller.results is not None and panel.controller.results.plan.base == base_of(
        Settings().replace({"learner.mu": 1})
    )
