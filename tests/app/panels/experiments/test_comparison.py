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
from app.experiments.race.picture import MEASURES
from app.experiments.race.plan import base_of
from app.panel_registry import COMPARISON
from app.plotting.plot import Plot
from grpo_core.config import PRESETS, Settings
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
    panel.choices.entries.usual.trigger()
    front(COMPARISON)
    settle(driver, panel)
    return panel


def settle(driver: Driver, panel: ComparisonPanel) -> None:
    driver.qtbot.waitUntil(lambda: not (panel.controller.busy or panel.settling))
    driver.settle()


def test_the_runs_algorithm_races_reinforce_and_the_terms_wait_behind_set_up(driver: Driver, front: Front) -> None:
    panel = front(COMPARISON)
    panel.choices.seeds.setCurrentIndex(0)
    panel.choices.updates.setCurrentIndex(0)
    settle(driver, panel)
    assert panel.controller.results is not None and list(panel.controller.results.digests) == ["REINFORCE", GRPO]
    assert panel.headline.text().splitlines()[0].startswith("Which is faster? GRPO is past")
    assert panel.headline.text().splitlines()[1].startswith("Which ends higher? GRPO leads REINFORCE")

    def changes(name: str) -> dict[str, object]:
        wanted = driver.program.workspace.editing.wanted
        found = wanted.differences(PRESETS[name].applied_to(wanted))
        return {path: new for path, (_, new) in found.items()}

    terms = (panel.choices.prompts, panel.choices.peaks, panel.choices.computed_on, panel.choices.passes)
    columns = range(panel.standing.model().columnCount())
    first = [n for n in columns if not panel.standing.isColumnHidden(n)]
    assert not any(term.isVisible() for term in terms) and len(first) <= 4
    panel.choices.setup.click()
    driver.settle()
    assert all(term.isVisible() for term in terms)
    driver.program.workspace.editing.edit(changes("RLOO"), "Another algorithm")
    driver.settle()
    settle(driver, panel)
    assert list(panel.controller.results.digests) == ["REINFORCE", "RLOO"]
    panel.choices.entries.entries["GSPO"].trigger()
    driver.program.workspace.editing.edit(changes("DAPO"), "The user's choice stays")
    driver.settle()
    settle(driver, panel)
    assert set(panel.choices.entries.names) == {"REINFORCE", "RLOO", "GSPO"}


@pytest.mark.parametrize("picture", ["plot", "standing"])
def test_a_number_of_a_race_leads_to_a_run_that_explains_its_own(
    driver: Driver, panel: ComparisonPanel, picture: str
) -> None:
    panel.pick("RLOO")
    driver.settle()
    with driver.qtbot.waitSignal(panel.run_wanted) as opened:
        getattr(panel, picture).explain_current()
    assert opened.args[0] == panel.controller.results.lanes["RLOO"].run(panel.chosen)  # type: ignore[union-attr]


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
