"""The first hour, with keys and mouse."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QScrollArea, QSlider, QToolButton

from app.panels.calm import CalmBox, CalmSlider
from app.workspace.cursor import Stage
from app.workspace.player import Mode
from grpo_core.config import BanditTask, Settings
from tests.app.conftest import Driver
from tests.app.stories.hands import activate, drag, panel, panel_of, press, row_of, turn_wheel, type_into

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


def test_space_runs_and_pauses(driver: Driver) -> None:
    activate(driver)
    driver.program.player.set_length(None)
    press(driver, Qt.Key.Key_Space)
    driver.qtbot.waitUntil(lambda: driver.head > 3, timeout=5000)
    assert driver.program.actions["run"].text() == "Pause"
    press(driver, Qt.Key.Key_Space)
    driver.rest()
    assert driver.program.actions["run"].text() == "Run"
    head = driver.head
    press(driver, Qt.Key.Key_Space, CTRL)
    driver.qtbot.waitUntil(lambda: driver.head > head, timeout=5000)
    press(driver, Qt.Key.Key_Space, CTRL)
    driver.rest()


def test_keys_step_walk_the_stages_and_jump(driver: Driver) -> None:
    activate(driver)
    workspace = driver.program.workspace
    press(driver, Qt.Key.Key_Period)
    driver.rest()
    press(driver, Qt.Key.Key_Period, SHIFT)
    driver.rest()
    assert (driver.head, workspace.cursor.stage) == (2, Stage.SAMPLE)
    press(driver, Qt.Key.Key_Period, SHIFT)
    driver.settle()
    assert (driver.head, workspace.cursor.stage) == (2, Stage.SCORE)
    press(driver, Qt.Key.Key_Comma, SHIFT)
    press(driver, Qt.Key.Key_Comma)
    driver.settle()
    assert (workspace.cursor.step, workspace.cursor.stage) == (1, Stage.UPDATE)
    press(driver, Qt.Key.Key_Period, CTRL)
    driver.rest()
    assert driver.head == 51
    panel(driver, "metrics").cards[1].setFocus()
    press(driver, Qt.Key.Key_Home)
    driver.settle()
    assert workspace.cursor.step == 0
    press(driver, Qt.Key.Key_N)
    driver.settle()
    first = workspace.cursor.step
    assert first > 0
    press(driver, Qt.Key.Key_N)
    driver.settle()
    press(driver, Qt.Key.Key_P)
    assert workspace.cursor.step == first
    press(driver, Qt.Key.Key_End)
    assert workspace.following


def test_the_timeline_is_clicked_dragged_and_walked(driver: Driver) -> None:
    driver.run(40)
    track, cursor = panel(driver, "timeline").track, lambda: driver.program.workspace.cursor.step
    middle = track.height() // 2
    drag(track, QPoint(0, middle), QPoint(track.width() // 4, middle), QPoint(track.width() // 2, middle))
    assert cursor() == 20
    track.setFocus()
    for key, expected in (
        (Qt.Key.Key_Right, 21), (Qt.Key.Key_PageDown, 25), (Qt.Key.Key_PageUp, 21), (Qt.Key.Key_Left, 20),
        (Qt.Key.Key_Home, 0), (Qt.Key.Key_Left, 0), (Qt.Key.Key_End, 40), (Qt.Key.Key_Right, 40),
    ):  # fmt: skip
        QTest.keyClick(track, key)
        assert cursor() == expected
    QTest.mouseClick(track, LEFT, pos=QPoint(track.width() - 1, middle))
    assert driver.program.workspace.following


def test_behind_the_head_the_timeline_offers_a_branch(driver: Driver) -> None:
    driver.run(6)
    line = panel(driver, "timeline")
    assert line.branch.isHidden()
    driver.program.workspace.move_to(4)
    driver.settle()
    assert (line.behind.text(), line.branch.isHidden()) == ("controls apply to update 7", False)
    line.branch.click()
    driver.settle()
    assert (driver.head, driver.program.transport.runs.count()) == (4, 2)
    assert driver.program.transport.status.text() == "no update yet"
    driver.run(1)
    assert driver.program.transport.status.text().startswith("autosaved")


def test_the_list_of_runs_switches_between_them(driver: Driver) -> None:
    driver.run(3)
    press(driver, Qt.Key.Key_N, CTRL)
    driver.program.deeds.new_run()
    runs = driver.program.transport.runs
    runs.setCurrentIndex(0)
    runs.activated.emit(0)
    driver.settle()
    assert driver.head == 3
    assert driver.program.transport.runs.currentIndex() == 0


def test_while_another_run_trains_the_button_says_run(driver: Driver) -> None:
    driver.program.player.set_length(None)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head > 3, timeout=5000)
    driver.program.deeds.new_run()
    driver.settle()
    assert driver.program.actions["run"].text() == "Run"
    assert driver.program.transport.status.text() == "Run 1 is training"
    driver.program.player.set_length(5)
    driver.program.actions["run"].trigger()
    driver.qtbot.waitUntil(lambda: driver.head == 5, timeout=5000)
    driver.rest()
    assert driver.program.transport.status.text().startswith("autosaved")


def test_choosing_a_speed_and_a_length_in_the_toolbar(driver: Driver) -> None:
    bar, player = driver.program.transport, driver.program.player
    for index, speed in enumerate((1.0, 2.0, 5.0, 10.0, 30.0, None)):
        bar.speed.activated.emit(index)
        assert player.speed == speed
    bar.length.activated.emit(0)
    driver.program.actions["run"].trigger()
    driver.rest()
    assert driver.head == 50
    assert (driver.program.preferences.speed, driver.program.preferences.run_length) == (None, 50)


def test_replaying_shows_pause_and_stops_with_a_step(driver: Driver) -> None:
    driver.run(30)
    driver.program.workspace.move_to(0)
    driver.program.actions["run"].trigger()
    driver.settle()
    assert driver.program.actions["run"].text() == "Pause"
    driver.program.actions["step"].trigger()
    assert driver.program.player.mode is Mode.RESTING


def test_saving_a_layout_adds_a_command_and_leaves_keys_and_toolbar_as_they_were(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("PySide6.QtWidgets.QInputDialog.getText", lambda *_: ("Mine", True))
    activate(driver)
    bar = driver.program.transport
    before = [button.text() for button in bar.findChildren(QToolButton) if button.isVisible()]
    driver.program.actions["save_layout"].trigger()
    driver.settle()
    assert [button.text() for button in bar.findChildren(QToolButton) if button.isVisible()] == before
    press(driver, Qt.Key.Key_Period)
    driver.rest()
    assert driver.head == 1
    driver.program.actions["panel.explain"].trigger()
    driver.program.actions["layout.Mine"].trigger()
    driver.settle()
    assert driver.program.window.docks["explain"].isVisible()
    assert driver.messages == []


# -- settings ----------------------------------------------------------------------------------------------------------


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


def test_a_refusal_goes_when_the_field_is_typed_into_again(driver: Driver) -> None:
    row = row_of(driver, "objective.beta")
    type_into(row.field, "abc")
    assert not row.error.isHidden()
    row.field.setFocus()
    QTest.keyClicks(row.field, "1")
    assert row.error.isHidden()


@pytest.mark.parametrize("entry", ["", "nan", "abc²", "1e999", "-1e30", "1,2,x"])
def test_no_field_of_all_takes_a_bad_entry_silently(driver: Driver, entry: str) -> None:
    controls, editing = panel(driver, "controls"), driver.program.workspace.editing
    controls.more.setChecked(True)
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


def test_a_structural_change_offers_a_new_run_and_can_be_dropped(driver: Driver) -> None:
    driver.run(1)
    controls = panel(driver, "controls")
    controls.more.setChecked(True)
    type_into(row_of(driver, "seed").field, "11")
    driver.settle()
    assert not controls.waiting.isHidden()
    assert "seed 11" in controls.waiting.text.text()
    controls.waiting.keep.click()
    driver.settle()
    assert controls.waiting.isHidden()
    assert row_of(driver, "seed").field.text() == "7"
    type_into(row_of(driver, "seed").field, "12")
    driver.settle()
    controls.waiting.begin.click()
    driver.run(1)
    assert driver.program.workspace.view.step.settings.seed == 12


def test_a_reward_of_the_custom_landscape_is_dragged(driver: Driver) -> None:
    driver.program.session.new_run(Settings(task=BanditTask(landscape="custom")))
    driver.run(1)
    plot = panel(driver, "policy_bars").plot

    def at(action: int, height: float) -> QPoint:
        return plot.mapFromScene(plot.view_box.mapViewToScene(QPointF(action + 1.0, height)))

    drag(plot.viewport(), at(2, 0.0), at(2, 0.3), at(2, 0.6), at(2, 0.9))
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
    driver.program.session.new_run(Settings(task=BanditTask(landscape=landscape, levels=(0.0, -1.0))))
    for index in range(controls.preset.count()):
        driver.program.workspace.move_to(driver.head)
        controls.preset.activated.emit(index)
        driver.program.deeds.new_run()
        driver.run(2)
        assert driver.head == 2, controls.preset.itemText(index)
        assert driver.messages == [], controls.preset.itemText(index)
    for name in driver.program.window.docks:
        panel(driver, name)
    for stage in Stage:
        driver.program.workspace.show_stage(stage, 0)
        driver.settle()
    assert driver.messages == []


# -- looking -----------------------------------------------------------------------------------------------------------


def test_cards_cells_tokens_and_bars_explain_themselves_when_clicked(driver: Driver) -> None:
    driver.run(5)
    explain, workspace = panel(driver, "explain"), driver.program.workspace

    def told() -> str:
        driver.settle()
        quantity, workspace.quantity = workspace.quantity, None
        assert quantity is not None
        assert explain.check.text().endswith("agrees") or explain.check.isHidden()
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
    place = plot.mapFromScene(plot.view_box.mapViewToScene(QPointF(action + 1.0, 0.05)))
    QTest.mouseClick(plot.viewport(), LEFT, pos=place)
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


def test_the_wheel_scrolls_the_controls_and_turns_no_knob_on_its_way(driver: Driver) -> None:
    window, controls = driver.program.window, panel(driver, "controls")
    window.resize(1366, 600)
    controls.more.setChecked(True)
    driver.settle()
    before, area = driver.program.workspace.editing.settings, controls.findChild(QScrollArea)
    bar = area.verticalScrollBar()
    slider = row_of(driver, "learner.group_size").slider
    for knob in (controls.preset, controls.kind, slider):
        bar.setValue(0)
        turn_wheel(window, knob)
        assert bar.value() > 20
    assert driver.program.workspace.editing.settings == before
    slider.setFocus()
    turn_wheel(window, slider)
    driver.settle()
    assert driver.program.workspace.editing.settings != before, "what has the focus is meant"


def test_no_panel_has_a_slider_or_a_choice_that_takes_the_wheel_unasked(driver: Driver) -> None:
    every = [driver.program.window.panels[id] for id in driver.program.window.docks]
    found = [part for one in every for part in (*one.findChildren(QSlider), *one.findChildren(QComboBox))]
    assert len(found) > 40
    assert [part.accessibleName() for part in found if not isinstance(part, (CalmSlider, CalmBox))] == []
