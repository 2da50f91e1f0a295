"""The comparison in the window: a race is started, changed and cancelled, seeds stay chosen, exploding numbers are
drawn, one of its runs is opened and repeated bit for bit, and a language model has a note on what races.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QPushButton,
    QTableView,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.experiments.comparison import ComparisonPanel
from app.experiments.race.picture import MEASURES
from app.experiments.race.plan import base_of
from app.experiments.race.results import RaceResults
from app.panel_registry import COMPARISON
from app.plotting.numbers import is_missing
from app.plotting.plot import Plot
from grpo_core.config import PRESETS, Settings
from grpo_core.experiments.race import SIX
from tests.app.conftest import Driver, make, take_down
from tests.app.panels.conftest import Front
from tests.app.panels.experiments.race.hands import BASELINE, GRPO
from tests.app.stories.hands import activate, press

pytestmark = pytest.mark.one_window


def choose(driver: Driver, **texts: str) -> None:
    """Choose entries of the combo boxes by their text."""
    for name, text in texts.items():
        box = getattr(driver.program.window.panels.of(COMPARISON).choices, name)
        assert box.findText(text) >= 0, text
        box.setCurrentIndex(box.findText(text))


def choose_few(driver: Driver) -> None:
    choose(driver, seeds="16 seeds", updates="50 updates")


@pytest.fixture
def panel(driver: Driver, front: Front) -> ComparisonPanel:
    """A small race in the window."""
    choose_few(driver)
    panel = driver.program.window.panels.of(COMPARISON)
    panel.choices.entries.usual.trigger()
    front(COMPARISON)
    settle(driver, panel)
    return panel


def results_of(panel: ComparisonPanel) -> RaceResults:
    assert panel.controller.results is not None
    return panel.controller.results


def settle(driver: Driver, panel: ComparisonPanel) -> None:
    """Wait until the race is over, then draw."""
    driver.qtbot.waitUntil(lambda: not (panel.controller.busy or panel.settling))
    driver.settle()


def test_the_runs_algorithm_races_reinforce_and_the_terms_wait_behind_set_up(driver: Driver, front: Front) -> None:
    panel = front(COMPARISON)
    choose_few(driver)
    settle(driver, panel)
    assert list(results_of(panel).digests) == ["REINFORCE", GRPO]
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
    assert list(results_of(panel).digests) == ["REINFORCE", "RLOO"]
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
    assert opened.args[0] == results_of(panel).lanes["RLOO"].run(panel.chosen)


def test_a_chosen_seed_stays_while_nobody_races_and_what_was_shown_is_dimmed(
    driver: Driver, panel: ComparisonPanel
) -> None:
    panel.pick("RLOO")
    assert panel.chosen == results_of(panel).lanes["RLOO"].median()
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
    assert results_of(panel).complete
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
    choose_few(language)
    panel = front(COMPARISON)
    settle(language, panel)
    assert "A race runs on the bandit" in panel.says.text()
    assert results_of(panel).plan.base == base_of(Settings().replace({"learner.mu": 1}))


def cell(panel: ComparisonPanel, name: str, column: str) -> Any:
    """Return a number of the standings, as displayed."""
    model = panel.standing.table
    row = list(results_of(panel).lanes).index(name)
    return model.value(model.place_of(row) or 0, [c.key for c in model.columns].index(column))


def test_the_race_is_run_when_it_is_first_seen_and_again_at_a_press(driver: Driver, panel: ComparisonPanel) -> None:
    first = results_of(panel)
    assert tuple(first.lanes) == SIX and first.complete
    assert panel.standing.table.rowCount() == 6
    assert panel.rect().contains(panel.plot.mapTo(panel, panel.plot.rect().bottomLeft())), "the whole chart is seen"
    for name in SIX:
        assert len(panel.plot.lines[name].y) == 51
        line = panel.plot.lines[name]
        assert line.low is not None and line.high is not None and (line.high > line.low).any()
    driver.qtbot.mouseClick(panel.choices.race, Qt.MouseButton.LeftButton)
    assert panel.controller.busy and panel.choices.race.text() == "Cancel"
    settle(driver, panel)
    assert panel.controller.results is not first
    assert panel.choices.race.text() == "Race"
    for name, lane in first.lanes.items():
        assert np.array_equal(results_of(panel).lanes[name].policy, lane.policy)


@pytest.mark.long
def test_a_fresh_window_races_with_one_mu_and_shows_what_else_differs_beside_each_name(
    driver: Driver, panel: ComparisonPanel
) -> None:
    assert driver.program.workspace.view.wanted.learner.mu == 4
    assert {cell(panel, name, "mu") for name in SIX} == {1}
    model = panel.standing.table
    shown = {str(model.value(place, 0)): model.text(place, 0) for place in range(6)}
    assert shown[GRPO] == f"{GRPO}  β 0.04" and shown["PPO-clip"] == "PPO-clip  β 0, critic"
    choose(driver, passes="μ of each source")
    settle(driver, panel)
    assert "PPO-clip  β 0, μ 4, critic" in [model.text(place, 0) for place in range(6)]
    choose(driver, passes="μ of the run for all")
    settle(driver, panel)
    assert {cell(panel, name, "mu") for name in SIX} == {4}


@pytest.mark.long
def test_at_equal_step_length_group_mean_and_grpo_are_said_to_coincide(driver: Driver, panel: ComparisonPanel) -> None:
    assert panel.says.text().startswith(f"{BASELINE} and Dr. GRPO coincide")  # at one pass, on one prompt
    choose(driver, fairness="Equal step length")
    settle(driver, panel)
    assert panel.says.text().startswith(f"{BASELINE} and Dr. GRPO coincide")
    assert "β still differs: it is 0.04 for RLOO and GRPO." in panel.says.text()
    assert "μ still differs" not in panel.says.text()
    choose(driver, passes="μ of each source")
    settle(driver, panel)
    assert "μ still differs: it is 4 for RLOO, Dr. GRPO and PPO-clip." in panel.says.text()
    driver.program.workspace.editing.edit({"objective.beta": 0.0, "learner.mu": 1}, "Make them alike")
    driver.settle()
    settle(driver, panel)
    assert f"{BASELINE}, RLOO, GRPO and Dr. GRPO coincide" in panel.says.text()
    assert "length of 0.3" in panel.says.text()
    assert {cell(panel, name, "mu") for name in SIX} == {1}
    assert cell(panel, GRPO, "reward") == pytest.approx(cell(panel, BASELINE, "reward"), abs=1e-9)


@pytest.mark.long
def test_a_constant_on_all_rewards_breaks_plain_reinforce(driver: Driver, panel: ComparisonPanel) -> None:
    choose(driver, seeds="64 seeds", updates="200 updates")
    settle(driver, panel)
    before = {name: cell(panel, name, "reward") for name in SIX}
    wrong = cell(panel, "REINFORCE", "wrong")
    choose(driver, constant="Rewards + 10")
    settle(driver, panel)
    assert cell(panel, "REINFORCE", "reward") - 10 < before["REINFORCE"] - 0.2
    assert cell(panel, "REINFORCE", "wrong") > wrong + 0.1
    assert cell(panel, "REINFORCE", "stuck") > 0.5
    assert cell(panel, GRPO, "reward") - 10 == pytest.approx(before[GRPO], abs=1e-6)
    assert (panel.plot.frame.y.low, panel.plot.frame.y.high) == (10.0, 11.0)


@pytest.mark.long
def test_at_equal_samples_each_has_its_own_group_and_as_many_samples(driver: Driver, panel: ComparisonPanel) -> None:
    choose(driver, fairness="Equal samples", axis="over samples")
    settle(driver, panel)
    assert [cell(panel, name, "group") for name in SIX] == [1, 8, 8, 8, 8, 8]
    assert {cell(panel, name, "samples") for name in SIX} == {400}
    assert panel.plot.places() == (0.0, 400.0)
    columns, rows = panel.plot.table()
    assert columns[0].title == "completions drawn" and len(rows) == 401
    there = [row[0] for row in rows if not is_missing(row[4])]
    assert there == list(range(0, 401, 8))


def test_training_goes_on_beside_a_race_and_a_cancelled_one_keeps_what_came_in(
    driver: Driver, panel: ComparisonPanel
) -> None:
    choose(driver, seeds="256 seeds", updates="1,000 updates")
    driver.run(10)
    assert driver.head == 10 and panel.controller.busy
    driver.qtbot.waitUntil(lambda: panel.controller.coming is not None and panel.controller.coming.count > 0)
    driver.qtbot.mouseClick(panel.choices.race, Qt.MouseButton.LeftButton)
    assert not panel.controller.busy
    assert f"Incomplete: {panel.standing.table.rowCount()} of 6 algorithms." in panel.says.text()
    assert 0 < panel.standing.table.rowCount() == len(panel.plot.lines) < 6
    driver.settle()
    assert not panel.controller.busy  # nobody starts it again


def test_one_of_its_runs_opens_and_repeats_bit_for_bit(driver: Driver, panel: ComparisonPanel) -> None:
    choose(driver, fairness="Equal step length", constant="Rewards + 1")
    settle(driver, panel)
    panel.pick("Dr. GRPO")
    panel.run.seed.setValue(11)
    driver.settle()
    lanes = results_of(panel)
    ours = lanes.lanes["Dr. GRPO"]
    driver.qtbot.mouseClick(panel.run.open, Qt.MouseButton.LeftButton)
    driver.settle()
    opened = driver.shown_run
    assert opened.origin.settings == ours.run(11)
    assert any("bit for bit" in message for message in driver.messages)
    assert not panel.controller.busy and panel.controller.results is lanes, "kept although another run is shown"
    assert "press Race" not in panel.says.text()
    driver.run(50)
    step = opened.step(50)
    assert step is not None
    last = step.distribution(step.passes)
    assert last is not None and np.array_equal(np.exp(last), ours.policy[11])
    driver.program.workspace.editing.edit({"optimizer.learning_rate": 1.0}, "Faster")
    driver.settle()
    settle(driver, panel)
    assert results_of(panel) is not lanes
    raced = results_of(panel).plan.settings
    assert raced.optimizer.learning_rate == 1.0
    assert raced.bandit.levels == (1.0,)  # the constant of the race is not added to that of the run once more


def test_a_key_races_from_anywhere_and_return_opens_a_row_of_the_table(driver: Driver) -> None:
    choose_few(driver)
    panel = driver.program.window.panels.of(COMPARISON)
    settle(driver, panel)
    activate(driver)
    assert not panel.seen
    press(driver, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    driver.settle()
    assert panel.seen
    settle(driver, panel)
    assert results_of(panel).complete
    panel.standing.setFocus()
    place = next(place for place in range(2) if panel.standing.table.value(place, 0) == "REINFORCE")
    panel.standing.selectRow(place)
    driver.settle()
    assert panel.lane == "REINFORCE"
    QTest.keyClick(panel.standing, Qt.Key.Key_Return)
    driver.settle()
    opened = driver.shown_run
    assert opened.origin.settings.objective.baseline == "none"


def test_closing_in_the_middle_of_a_race_is_clean(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    driver = make(qtbot, tmp_path, layout="Compare")
    choose(driver, seeds="256 seeds", updates="1,000 updates")
    panel = driver.program.window.panels.of(COMPARISON)
    assert panel.controller.busy
    take_down(driver)
    assert not panel.controller.busy


def test_a_race_of_settings_that_cannot_be_says_why(driver: Driver, panel: ComparisonPanel) -> None:
    driver.program.run_manager.new_run(Settings().replace({"task.actions": 2, "task.peak": 2.0}))
    driver.settle()
    assert "press Race" in panel.says.text()
    panel.choices.peaks.click()
    settle(driver, panel)
    assert "bias_action" in panel.says.text() or "actions" in panel.says.text()
    panel.choices.peaks.click()
    settle(driver, panel)
    assert results_of(panel).lanes[GRPO].policy.shape == (16, 1, 2)
