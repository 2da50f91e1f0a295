"""A user's race: started, changed, cancelled, and one of its runs opened and repeated bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.experiments.comparison import ComparisonPanel
from app.plotting.numbers import is_missing
from grpo_core.config import Settings
from grpo_core.experiments.race import SIX
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import activate, press

pytestmark = pytest.mark.one_window

FEW = {"seeds": "16 seeds", "updates": "50 updates"}
GRPO, BASELINE = "GRPO (DeepSeekMath)", "REINFORCE + baseline"


def choose(driver: Driver, **texts: str) -> None:
    """Choose entries of the combo boxes by their text."""
    for name, text in texts.items():
        box = getattr(driver.program.window.panels["comparison"].choices, name)  # type: ignore[attr-defined]
        assert box.findText(text) >= 0, text
        box.setCurrentIndex(box.findText(text))


def finish(driver: Driver) -> ComparisonPanel:
    """Wait until the race is over, then draw."""
    found = driver.program.window.panels["comparison"]
    assert isinstance(found, ComparisonPanel)
    driver.qtbot.waitUntil(lambda: not (found.controller.busy or found.settling))
    driver.settle()
    return found


@pytest.fixture
def race(driver: Driver) -> ComparisonPanel:
    """A small race in its layout, finished."""
    choose(driver, **FEW)
    found = driver.program.window.panels["comparison"]
    assert isinstance(found, ComparisonPanel)
    found.choices.entries.usual.trigger()
    driver.program.actions["layout.Compare"].trigger()
    driver.settle()
    return finish(driver)


def cell(panel: ComparisonPanel, name: str, column: str) -> Any:
    """Return a number of the standings, as displayed."""
    model = panel.standing.table
    row = list(panel.controller.results.lanes).index(name)  # type: ignore[union-attr]
    return model.value(model.place_of(row) or 0, [c.key for c in model.columns].index(column))


def test_the_race_is_run_when_it_is_first_seen_and_again_at_a_press(driver: Driver, race: ComparisonPanel) -> None:
    first = race.controller.results
    assert first is not None and tuple(first.lanes) == SIX and first.complete
    assert race.standing.table.rowCount() == 6
    for name in SIX:
        assert len(race.plot.lines[name].y) == 51
        line = race.plot.lines[name]
        assert line.low is not None and line.high is not None and (line.high > line.low).any()
    driver.qtbot.mouseClick(race.choices.race, Qt.MouseButton.LeftButton)
    assert race.controller.busy and race.choices.race.text() == "Cancel"
    finish(driver)
    assert race.controller.results is not first
    assert race.choices.race.text() == "Race"
    for name, lane in first.lanes.items():
        assert np.array_equal(race.controller.results.lanes[name].policy, lane.policy)  # type: ignore[union-attr]


@pytest.mark.long
def test_a_fresh_window_races_with_one_mu_and_shows_what_else_differs_beside_each_name(
    driver: Driver, race: ComparisonPanel
) -> None:
    assert driver.program.workspace.view.wanted.learner.mu == 4
    assert {cell(race, name, "mu") for name in SIX} == {1}
    model = race.standing.table
    shown = {str(model.value(place, 0)): model.text(place, 0) for place in range(6)}
    assert shown[GRPO] == f"{GRPO}  β 0.04" and shown["PPO-clip"] == "PPO-clip  β 0, critic"
    choose(driver, passes="μ of each source")
    finish(driver)
    assert "PPO-clip  β 0, μ 4, critic" in [model.text(place, 0) for place in range(6)]
    choose(driver, passes="μ of the run for all")
    finish(driver)
    assert {cell(race, name, "mu") for name in SIX} == {4}


@pytest.mark.long
def test_at_equal_step_length_group_mean_and_grpo_are_said_to_coincide(driver: Driver, race: ComparisonPanel) -> None:
    assert race.says.text().startswith(f"{BASELINE} and Dr. GRPO coincide")  # at one pass, on one prompt
    choose(driver, fairness="Equal step length")
    finish(driver)
    assert race.says.text().startswith(f"{BASELINE} and Dr. GRPO coincide")
    assert "β still differs: it is 0.04 for RLOO and GRPO." in race.says.text()
    assert "μ still differs" not in race.says.text()
    choose(driver, passes="μ of each source")
    finish(driver)
    assert "μ still differs: it is 4 for RLOO, Dr. GRPO and PPO-clip." in race.says.text()
    driver.program.workspace.editing.edit({"objective.beta": 0.0, "learner.mu": 1}, "Make them alike")
    driver.settle()
    finish(driver)
    assert f"{BASELINE}, RLOO, GRPO and Dr. GRPO coincide" in race.says.text()
    assert "length of 0.3" in race.says.text()
    assert {cell(race, name, "mu") for name in SIX} == {1}
    assert cell(race, GRPO, "reward") == pytest.approx(cell(race, BASELINE, "reward"), abs=1e-9)


@pytest.mark.long
def test_a_constant_on_all_rewards_breaks_plain_reinforce(driver: Driver, race: ComparisonPanel) -> None:
    choose(driver, seeds="64 seeds", updates="200 updates")
    finish(driver)
    before = {name: cell(race, name, "reward") for name in SIX}
    wrong = cell(race, "REINFORCE", "wrong")
    choose(driver, constant="Rewards + 10")
    finish(driver)
    assert cell(race, "REINFORCE", "reward") - 10 < before["REINFORCE"] - 0.2
    assert cell(race, "REINFORCE", "wrong") > wrong + 0.1
    assert cell(race, "REINFORCE", "stuck") > 0.5
    assert cell(race, GRPO, "reward") - 10 == pytest.approx(before[GRPO], abs=1e-6)
    assert (race.plot.frame.y.low, race.plot.frame.y.high) == (10.0, 11.0)


@pytest.mark.long
def test_at_equal_samples_each_has_its_own_group_and_as_many_samples(driver: Driver, race: ComparisonPanel) -> None:
    choose(driver, fairness="Equal samples", axis="over samples")
    finish(driver)
    assert [cell(race, name, "group") for name in SIX] == [1, 8, 8, 8, 8, 8]
    assert {cell(race, name, "samples") for name in SIX} == {400}
    assert race.plot.places() == (0.0, 400.0)
    columns, rows = race.plot.table()
    assert columns[0].title == "completions drawn" and len(rows) == 401
    there = [row[0] for row in rows if not is_missing(row[4])]
    assert there == list(range(0, 401, 8))


def test_training_goes_on_beside_a_race_and_a_cancelled_one_keeps_what_came_in(
    driver: Driver, race: ComparisonPanel
) -> None:
    choose(driver, seeds="256 seeds", updates="1,000 updates")
    driver.run(10)
    assert driver.head == 10 and race.controller.busy
    driver.qtbot.waitUntil(lambda: race.controller.coming is not None and race.controller.coming.count > 0)
    driver.qtbot.mouseClick(race.choices.race, Qt.MouseButton.LeftButton)
    assert not race.controller.busy
    assert f"Incomplete: {race.standing.table.rowCount()} of 6 algorithms." in race.says.text()
    assert 0 < race.standing.table.rowCount() == len(race.plot.lines) < 6
    driver.settle()
    assert not race.controller.busy  # nobody starts it again


def test_one_of_its_runs_opens_and_repeats_bit_for_bit(driver: Driver, race: ComparisonPanel) -> None:
    choose(driver, fairness="Equal step length", constant="Rewards + 1")
    finish(driver)
    race.pick("Dr. GRPO")
    race.run.seed.setValue(11)
    driver.settle()
    lanes = race.controller.results
    assert lanes is not None
    ours = lanes.lanes["Dr. GRPO"]
    driver.qtbot.mouseClick(race.run.open, Qt.MouseButton.LeftButton)
    driver.settle()
    opened = driver.program.workspace.run
    assert opened is not None and opened.origin.settings == ours.run(11)
    assert any("bit for bit" in message for message in driver.messages)
    assert (
        not race.controller.busy and race.controller.results is lanes
    )  # the race is kept although another run is shown
    assert "press Race" not in race.says.text()
    driver.run(50)
    step = opened.step(50)
    assert step is not None
    last = step.distribution(step.passes)
    assert last is not None and np.array_equal(np.exp(last), ours.policy[11])
    driver.program.workspace.editing.edit({"optimizer.learning_rate": 1.0}, "Faster")
    driver.settle()
    finish(driver)
    assert race.controller.results is not lanes
    raced = race.controller.results.plan.settings
    assert raced.optimizer.learning_rate == 1.0
    assert raced.bandit.levels == (1.0,)  # the constant of the race is not added to that of the run once more


def test_a_key_races_from_anywhere_and_return_opens_a_row_of_the_table(driver: Driver) -> None:
    choose(driver, **FEW)
    finish(driver)
    activate(driver)
    panel = driver.program.window.panels["comparison"]
    assert isinstance(panel, ComparisonPanel) and not panel.seen
    press(driver, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    driver.settle()
    assert panel.seen
    results = finish(driver).controller.results
    assert results is not None and results.complete
    panel.standing.setFocus()
    place = next(place for place in range(2) if panel.standing.table.value(place, 0) == "REINFORCE")
    panel.standing.selectRow(place)
    driver.settle()
    assert panel.lane == "REINFORCE"
    QTest.keyClick(panel.standing, Qt.Key.Key_Return)
    driver.settle()
    opened = driver.program.workspace.run
    assert opened is not None and opened.origin.settings.objective.baseline == "none"


def test_closing_in_the_middle_of_a_race_is_clean(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    driver = make(qtbot, tmp_path, layout="Compare")
    choose(driver, seeds="256 seeds", updates="1,000 updates")
    panel = driver.program.window.panels["comparison"]
    assert isinstance(panel, ComparisonPanel) and panel.controller.busy
    take_down(driver)
    assert not panel.controller.busy


def test_a_race_of_settings_that_cannot_be_says_why(driver: Driver, race: ComparisonPanel) -> None:
    driver.program.run_manager.new_run(Settings().replace({"task.actions": 2, "task.peak": 2.0}))
    driver.settle()
    assert "press Race" in race.says.text()
    race.choices.peaks.click()
    finish(driver)
    assert "bias_action" in race.says.text() or "actions" in race.says.text()
    race.choices.peaks.click()
    finish(driver)
    assert race.controller.results is not None and race.controller.results.lanes[GRPO].policy.shape == (16, 1, 2)
