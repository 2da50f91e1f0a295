"""Settings are changed, refused, undone; a preset is one undo step."""

from __future__ import annotations

import pytest

from app.panels.controls.panel import ControlsPanel
from grpo_core.config import Settings
from tests.app.conftest import Driver
from tests.app.stories.hands import row_of, type_into

pytestmark = pytest.mark.one_window


def test_a_knob_acts_at_the_next_update_marks_the_history_and_can_be_undone(driver: Driver) -> None:
    driver.run(3)
    type_into(row_of(driver, "objective.beta").field, "0.5")
    driver.run(2)
    run = driver.program.workspace.run
    assert run is not None
    assert [(first, s.objective.beta) for first, s in run.changes] == [(1, 0.04), (4, 0.5)]
    driver.program.workspace.move_to(2)
    driver.settle()
    assert row_of(driver, "objective.beta").name.text().endswith("•")
    driver.program.actions["undo"].trigger()
    driver.settle()
    assert driver.program.workspace.editing.settings.objective.beta == 0.04
    driver.program.actions["redo"].trigger()
    assert driver.program.workspace.editing.settings.objective.beta == 0.5
    assert driver.head == 5


def test_a_lock_that_is_lifted_leaves_the_tooltip_of_the_update_shown(driver: Driver) -> None:
    driver.run(3)
    editing, row = driver.program.workspace.editing, row_of(driver, "objective.beta")
    editing.edit({"objective.beta": 0.5}, "Change β")
    usual = row.name.toolTip()
    driver.program.workspace.move_to(2)
    driver.settle()
    assert "ran with 0.04" in row.name.toolTip()
    editing.restrict(["objective.beta"], [])
    driver.settle()
    driver.program.workspace.follow()
    driver.settle()
    editing.restrict([], [])
    driver.settle()
    assert row.name.toolTip() == usual


@pytest.mark.parametrize("entry", ["", "nan", "abc", "1e999", "-1"])
def test_a_bad_entry_is_refused_beside_the_field(driver: Driver, entry: str) -> None:
    type_into(row_of(driver, "objective.beta").field, entry)
    row = row_of(driver, "objective.beta")
    assert not row.error.isHidden()
    assert "from 0 to 1000" in row.error.text()
    assert driver.program.workspace.editing.settings == Settings()
    assert row_of(driver, "objective.beta").field.text() == "0.04"


def test_a_fraction_is_no_number_of_passes(driver: Driver) -> None:
    type_into(row_of(driver, "learner.mu").field, "2.5")
    assert "without a fraction" in row_of(driver, "learner.mu").error.text()


def test_what_runs_after_a_structural_change_is_a_new_run_under_it(driver: Driver) -> None:
    driver.run(2)
    old = driver.program.workspace.run
    driver.program.workspace.editing.edit({"task.actions": 6, "task.custom": (0.0,) * 6}, "Change actions")
    assert driver.program.workspace.view.step.now.shape == (1, 10)  # type: ignore[union-attr]
    driver.run(1)
    assert driver.program.workspace.view.step.now.shape == (1, 6)  # type: ignore[union-attr]
    assert old in driver.program.workspace.runs
    assert old is not None
    assert old.head == 2


def test_choosing_a_preset_is_one_step_of_undo(driver: Driver) -> None:
    panel = driver.program.window.panels["controls"]
    assert isinstance(panel, ControlsPanel)
    place = panel.preset.findText("Dr. GRPO")
    panel.preset.setCurrentIndex(place)
    panel.preset.activated.emit(place)
    assert driver.program.workspace.editing.settings.objective.std == "none"
    driver.settle()
    driver.program.actions["undo"].trigger()
    assert driver.program.workspace.editing.settings == Settings()
