"""Controls operated with keys and mouse: changed, typed into, refused, undone; a preset is one undo step."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QScrollArea, QSlider

from app.widgets.calm import CalmBox, CalmSlider
from app.workspace.cursor import Stage
from grpo_core.config import PRESETS, BanditTask, Settings
from grpo_core.surrogates import SURROGATES
from tests.app.conftest import Driver
from tests.app.geometry import pixel_at
from tests.app.stories.hands import drag, panel, row_of, turn_wheel, type_into

pytestmark = pytest.mark.one_window("controls")

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


def test_a_knob_acts_at_the_next_update_marks_the_history_and_can_be_undone(driver: Driver) -> None:
    driver.run(3)
    type_into(row_of(driver, "objective.beta").field, "0.5")
    driver.run(2)
    run = driver.shown_run
    assert [(first, s.objective.beta) for first, s in run.changes] == [(1, 0.04), (4, 0.5)]
    driver.move_to(2)
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
    driver.move_to(2)
    assert "ran with 0.04" in row.name.toolTip()
    editing.restrict(["objective.beta"], [])
    driver.settle()
    driver.program.workspace.follow()
    driver.settle()
    editing.restrict([], [])
    driver.settle()
    assert row.name.toolTip() == usual


@pytest.mark.parametrize("entry", ["", "nan", "abc", "1e999", "-1"])
def test_a_bad_entry_is_refused_beside_the_field_until_it_is_typed_into_again(driver: Driver, entry: str) -> None:
    row = row_of(driver, "objective.beta")
    type_into(row.field, entry)
    assert not row.error.isHidden()
    assert "from 0 to 1000" in row.error.text()
    assert driver.program.workspace.editing.settings == Settings()
    assert row.field.text() == "0.04"
    row.field.setFocus()
    QTest.keyClicks(row.field, "1")
    assert row.error.isHidden()


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
    preset = panel(driver, "controls").preset
    place = preset.findText("Dr. GRPO")
    preset.setCurrentIndex(place)
    preset.activated.emit(place)
    assert driver.program.workspace.editing.settings.objective.std == "none"
    driver.settle()
    driver.program.actions["undo"].trigger()
    assert driver.program.workspace.editing.settings == Settings()


def test_a_dragged_slider_is_one_step_of_undo(driver: Driver) -> None:
    slider, editing = row_of(driver, "objective.beta").slider, driver.program.workspace.editing
    slider.setSliderDown(True)
    for value in (80, 200, 400):
        slider.setValue(value)
    slider.setSliderDown(False)
    assert editing.settings.objective.beta != 0.04
    assert editing.undo.count() == 1
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert editing.undo.count() == 2
    driver.settle()
    for _ in range(2):
        driver.program.actions["undo"].trigger()
    assert editing.settings == Settings()


@pytest.mark.quick_cases("nan", "1e999", "1,2,x")
@pytest.mark.parametrize("entry", ["", "nan", "abc²", "1e999", "-1e30", "1,2,x"])
def test_no_field_of_all_takes_a_bad_entry_silently(driver: Driver, entry: str) -> None:
    controls, editing = panel(driver, "controls"), driver.program.workspace.editing
    controls.further.more.setChecked(True)
    for row in controls.rows:
        field = getattr(row, "field", None)
        if field is None or row.isHidden():
            continue
        before = editing.wanted
        type_into(field, entry)
        assert editing.wanted == before or row.error.isHidden()
        if editing.wanted == before and field.text() != entry:
            assert "stays" in row.error.text() or field.text() in ("", entry), row.paths
        driver.program.actions["undo"].trigger()


def test_a_structural_change_makes_a_new_run_and_can_be_taken_back(driver: Driver) -> None:
    driver.run(1)
    first = driver.program.workspace.run
    panel(driver, "controls").further.more.setChecked(True)
    type_into(row_of(driver, "task.actions").field, "6")
    driver.qtbot.waitUntil(lambda: driver.program.workspace.run is not first)
    driver.program.actions["undo"].trigger()
    driver.qtbot.waitUntil(lambda: driver.program.workspace.run is first)
    driver.settle()
    assert row_of(driver, "task.actions").field.text() == "10"
    type_into(row_of(driver, "task.actions").field, "12")
    driver.run(1)
    assert driver.program.workspace.view.step.settings.bandit.actions == 12


def test_a_reward_of_the_custom_landscape_is_dragged(driver: Driver) -> None:
    driver.program.run_manager.new_run(Settings(task=BanditTask(landscape="custom")))
    driver.run(1)
    plot = panel(driver, "policy_bars").plot

    def at(action: int, height: float) -> QPoint:
        return pixel_at(plot, action, height).toPoint()

    drag(plot, at(2, 0.0), at(2, 0.3), at(2, 0.6), at(2, 0.9))
    editing = driver.program.workspace.editing
    assert editing.settings.bandit.custom[2] == pytest.approx(0.9, abs=0.02)
    assert editing.undo.count() == 1
    driver.run(1)
    assert driver.program.workspace.run is not None
    assert driver.program.workspace.run.changes[-1][0] == 2


@pytest.mark.parametrize(
    "landscape",
    ["chain", *(pytest.param(name, marks=pytest.mark.long) for name in ("single_peak", "custom", "length"))],
)
def test_every_task_and_preset_runs_and_every_panel_draws_it(driver: Driver, landscape: str) -> None:
    controls = panel(driver, "controls")
    driver.program.run_manager.new_run(Settings(task=BanditTask(landscape=landscape, levels=(0.0, -1.0))))
    for index in map(controls.preset.findData, PRESETS):
        driver.program.workspace.move_to(driver.head)
        controls.preset.activated.emit(index)
        driver.program.runs.new_run()
        driver.run(2)
        assert driver.head == 2, controls.preset.itemText(index)
        assert driver.messages == [], controls.preset.itemText(index)
    for name in driver.program.window.docks:
        panel(driver, name)
    for stage in Stage:
        driver.program.workspace.show_stage(stage, 0)
        driver.settle()
    assert driver.messages == []


def test_the_wheel_scrolls_the_controls_and_turns_no_knob_on_its_way(driver: Driver) -> None:
    window, controls = driver.program.window, panel(driver, "controls")
    window.resize(1366, 600)
    controls.further.more.setChecked(True)
    driver.settle()
    before, area = driver.program.workspace.editing.settings, controls.findChild(QScrollArea)
    bar = area.verticalScrollBar()
    slider = row_of(driver, "learner.group_size").slider
    for knob in (controls.preset, controls.kind, slider):
        bar.setValue(0)
        turn_wheel(window, knob)
        assert bar.value() > 20
    assert driver.program.workspace.editing.settings == before
    bar.setValue(0)
    slider.setFocus()
    turn_wheel(window, slider)
    driver.settle()
    assert driver.program.workspace.editing.settings != before, "what has the focus is meant"


def test_no_panel_has_a_slider_or_a_choice_that_takes_the_wheel_unasked(driver: Driver) -> None:
    every = [driver.program.window.panels[id] for id in driver.program.window.docks]
    found = [part for one in every for part in (*one.findChildren(QSlider), *one.findChildren(QComboBox))]
    assert len(found) > 40
    assert [part.accessibleName() for part in found if not isinstance(part, (CalmSlider, CalmBox))] == []


def paths_shown(driver: Driver) -> set[str]:
    controls = panel(driver, "controls")
    controls.further.more.setChecked(True)
    driver.settle()
    return {path for row in controls.rows if not row.isHidden() for path in row.paths}


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_only_the_knobs_that_act_under_the_chosen_surrogate_are_shown(driver: Driver, surrogate: str) -> None:
    driver.program.workspace.editing.edit({"objective.surrogate": surrogate}, "Change surrogate")
    shown = paths_shown(driver)
    for each in SURROGATES.values():
        for knob in each.knobs:
            assert (f"objective.{knob}" in shown) == (knob in SURROGATES[surrogate].knobs), knob
    assert "objective.max_tokens" not in shown
    assert "learner.critic_rate" not in shown


def test_a_heading_goes_with_its_last_row_and_comes_with_its_first(driver: Driver) -> None:
    paths_shown(driver)
    controls = panel(driver, "controls")
    sections = controls.further.sections
    assert {"Advantage", "Ratio and clip", "KL and entropy", "Mean over tokens"} <= {title.text() for title in sections}
    for heading, rows in sections.items():
        assert heading.isHidden() == all(row.isHidden() for row in rows)
