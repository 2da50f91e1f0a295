"""What a person does in the window, from the first start on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from app.panels.controls.panel import ControlsPanel
from app.panels.controls.row import Row
from app.panels.controls.rows import NumberRow
from app.panels.explain import ExplainPanel
from app.panels.metrics import MetricsPanel
from app.settings.preferences import load_preferences
from app.workspace.cursor import Stage
from app.workspace.events import next_event
from grpo_core.config import BanditTask, Objective, Optimizer, Settings
from grpo_core.explain import Quantity, explain
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver, make, take_down


def row_of(driver: Driver, path: str) -> Row:
    panel = driver.program.window.panels["controls"]
    assert isinstance(panel, ControlsPanel)
    return next(row for row in panel.rows if path in row.paths)


def field_of(driver: Driver, path: str) -> QLineEdit:
    row = row_of(driver, path)
    assert isinstance(row, NumberRow)
    return row.field


def type_into(field: QLineEdit, text: str) -> None:
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text) if text else QTest.keyClick(field, Qt.Key.Key_Backspace)
    QTest.keyClick(field, Qt.Key.Key_Return)


def press(driver: Driver, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    """A key in the window, with the focus on the picture."""
    target = QApplication.focusWidget() or driver.program.window
    QTest.keyClick(target, key, modifier)


# -- the first minutes -----------------------------------------------------------------------------------------------


def test_the_first_start_shows_update_zero_and_writes_no_file(driver: Driver) -> None:
    view = driver.program.workspace.view
    assert view.head == 0
    values = view.step.metrics
    assert values["kl"] == 0
    assert values["max_prob"] == pytest.approx(0.1)
    assert values["entropy"] == pytest.approx(np.log(10))
    cards = driver.program.window.panels["metrics"]
    assert isinstance(cards, MetricsPanel)
    assert [card.accessibleName() for card in cards.cards[2:5]] == [
        "KL from reference 0.000", "max π(a) 0.100", "Entropy 2.303",
    ]  # fmt: skip
    assert list(driver.program.paths.runs.iterdir()) == []


def test_within_two_hundred_updates_the_policy_climbs_onto_action_seven_and_the_run_stops(driver: Driver) -> None:
    driver.program.player.run()
    driver.rest()
    assert driver.head == 200
    now = driver.program.workspace.view.step.now
    assert now is not None
    assert now[0].argmax() == 6
    assert now[0, 6] > 0.8


def test_a_run_is_on_disk_from_its_first_update(driver: Driver) -> None:
    driver.run(1)
    run = driver.program.workspace.run
    assert run is not None
    with RunReader.open(run.path) as reader:
        assert reader.last == 1


def test_keys_run_step_and_step_back(driver: Driver) -> None:
    driver.program.window.activateWindow()
    driver.program.window.show_layout("Bandit")
    driver.settle()
    driver.program.actions["step"].trigger()
    driver.rest()
    driver.program.actions["step"].trigger()
    driver.rest()
    assert driver.program.workspace.cursor.step == 2
    driver.program.actions["step_back"].trigger()
    assert driver.program.workspace.cursor.step == 1
    driver.program.actions["step"].trigger()
    driver.rest()
    assert (driver.program.workspace.cursor.step, driver.head) == (2, 2)


def test_stages_reveal_an_update_and_never_compute(driver: Driver) -> None:
    driver.run(2)
    workspace = driver.program.workspace
    workspace.show_stage(Stage.SAMPLE)
    walked = []
    for _ in range(7):
        driver.program.actions["stage"].trigger()
        walked.append((workspace.cursor.stage, workspace.cursor.passed))
        if workspace.cursor.next_stage(4) is None:
            break
    assert walked == [(Stage.SCORE, -1), (Stage.NORMALIZE, -1), *[(Stage.UPDATE, n) for n in range(4)]]
    assert driver.head == 2
    driver.program.actions["stage"].trigger()
    driver.rest()
    assert (driver.head, workspace.cursor.step, workspace.cursor.stage) == (3, 3, Stage.SAMPLE)


def test_run_n_counts_exactly(driver: Driver) -> None:
    driver.program.actions["run_n"].trigger()
    driver.rest()
    assert driver.head == 50


def test_behind_the_head_run_replays_and_then_goes_live(driver: Driver) -> None:
    driver.run(5)
    driver.program.workspace.move_to(2)
    driver.program.player.set_length(3)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head == 8, timeout=10_000)
    driver.rest()
    assert (driver.head, driver.program.workspace.cursor.step) == (8, 8)


# -- settings ----------------------------------------------------------------------------------------------------------


def test_a_knob_acts_at_the_next_update_marks_the_history_and_can_be_undone(driver: Driver) -> None:
    driver.run(3)
    type_into(field_of(driver, "objective.beta"), "0.5")
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


@pytest.mark.parametrize("entry", ["", "nan", "abc", "1e999", "-1"])
def test_a_bad_entry_is_refused_beside_the_field(driver: Driver, entry: str) -> None:
    type_into(field_of(driver, "objective.beta"), entry)
    row = row_of(driver, "objective.beta")
    assert not row.error.isHidden()
    assert "from 0 to 1000" in row.error.text()
    assert driver.program.workspace.editing.settings == Settings()
    assert field_of(driver, "objective.beta").text() == "0.04"


def test_a_fraction_is_no_number_of_passes(driver: Driver) -> None:
    type_into(field_of(driver, "learner.mu"), "2.5")
    assert "without a fraction" in row_of(driver, "learner.mu").error.text()


def test_a_structural_change_waits_for_a_new_run(driver: Driver) -> None:
    driver.run(2)
    old = driver.program.workspace.run
    driver.program.workspace.editing.edit({"task.actions": 6, "task.custom": (0.0,) * 6}, "Change actions")
    driver.run(1)
    assert driver.program.workspace.view.step.now.shape == (1, 10)  # type: ignore[union-attr]
    panel = driver.program.window.panels["controls"]
    assert isinstance(panel, ControlsPanel)
    panel.new_run.emit()
    driver.run(1)
    assert driver.program.workspace.view.step.now.shape == (1, 6)  # type: ignore[union-attr]
    assert old in driver.program.workspace.runs
    assert old is not None
    assert old.head == 3


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


# -- the past ----------------------------------------------------------------------------------------------------------


def test_the_timeline_scrubs(driver: Driver) -> None:
    driver.run(20)
    track = driver.program.window.panels["timeline"].track  # type: ignore[attr-defined]
    QTest.mouseClick(track, Qt.MouseButton.LeftButton, pos=QPoint(track.width() // 2, track.height() // 2))
    assert driver.program.workspace.cursor.step == 10
    assert not driver.program.workspace.following
    driver.settle()
    assert driver.program.workspace.view.step.number == 10
    QTest.keyClick(track, Qt.Key.Key_Right)
    assert driver.program.workspace.cursor.step == 11
    driver.program.actions["go_end"].trigger()
    assert driver.program.workspace.following


def test_the_next_event_is_a_real_one(driver: Driver) -> None:
    driver.run(60)
    driver.program.workspace.move_to(0)
    driver.settle()
    run = driver.program.workspace.run
    assert run is not None
    event = next_event(run, 0)
    assert event is not None
    driver.program.actions["next_event"].trigger()
    assert driver.program.workspace.cursor.step == event[0]


def test_a_branch_with_the_same_settings_repeats_its_parent_bit_for_bit(driver: Driver) -> None:
    driver.run(12)
    workspace = driver.program.workspace
    parent = workspace.run
    assert parent is not None
    workspace.move_to(5)
    driver.program.actions["branch"].trigger()
    driver.settle()
    child = workspace.run
    assert child is not None
    assert child is not parent
    assert child.head == 5
    driver.run(7)
    for step in range(1, 13):
        mine, theirs = child.step(step), parent.step(step)
        assert mine is not None
        assert theirs is not None
        assert np.array_equal(mine.logp, theirs.logp)


def test_a_branch_with_another_beta_differs_from_there_on(driver: Driver) -> None:
    driver.run(8)
    workspace = driver.program.workspace
    parent = workspace.run
    workspace.move_to(4)
    workspace.editing.edit({"objective.beta": 1.0}, "Change beta")
    driver.program.actions["branch"].trigger()
    driver.run(4)
    child = workspace.run
    assert child is not None
    assert parent is not None
    assert [(first, s.objective.beta) for first, s in child.changes] == [(1, 0.04), (5, 1.0)]
    assert child.series["kl"].values[3] == parent.series["kl"].values[3]
    assert child.series["kl"].values[7] != parent.series["kl"].values[7]


def test_a_branch_of_a_branch_reaches_back_to_the_first_run(driver: Driver) -> None:
    driver.run(6)
    workspace = driver.program.workspace
    first = workspace.run
    for at in (4, 2):
        workspace.move_to(at)
        driver.program.actions["branch"].trigger()
        driver.run(3)
    last = workspace.run
    assert last is not None
    assert first is not None
    assert last.head == 5
    assert np.array_equal(last.step(1).logp, first.step(1).logp)  # type: ignore[union-attr]


def test_a_new_run_keeps_the_old_one(driver: Driver) -> None:
    driver.run(3)
    driver.program.actions["new_run"].trigger()
    assert driver.head == 0
    assert [run.head for run in driver.program.workspace.runs] == [3, 0]


# -- files -------------------------------------------------------------------------------------------------------------


def test_save_as_copies_and_the_copy_opens_equal(driver: Driver, tmp_path: Path) -> None:
    driver.run(9)
    run = driver.program.workspace.run
    assert run is not None
    target = tmp_path / "kept – ünï.grpo"
    driver.program.session.save_as(run, target)
    driver.program.deeds.open_path(target)
    driver.settle()
    opened = driver.program.workspace.run
    assert opened is not None
    assert opened is not run
    assert opened.head == 9
    assert np.array_equal(opened.series["reward_mean"].values, run.series["reward_mean"].values)
    driver.run(1)
    assert opened.head == 10


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_run_is_told_and_nothing_changes(driver: Driver, tmp_path: Path, content: bytes) -> None:
    broken = tmp_path / "broken.grpo"
    broken.write_bytes(content)
    before = driver.program.workspace.run
    driver.program.deeds.open_path(broken)
    assert driver.program.workspace.run is before
    assert any("broken.grpo" in text for text in driver.messages)


def test_the_last_run_is_offered_again(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    first = make(qtbot, tmp_path / "home")
    first.run(4)
    preferences = first.program.paths.preferences
    take_down(first)
    last = load_preferences(preferences)[0].last_run
    assert last is not None
    second = make(qtbot, tmp_path / "home")
    second.program.offers.reopen(Path(last))
    second.settle()
    assert (second.head, len(second.program.workspace.runs)) == (4, 1)
    second.run(1)
    assert second.head == 5
    take_down(second)


def test_two_windows_cannot_write_one_run(qtbot: QtBot, driver: Driver, tmp_path: Path) -> None:
    driver.run(3)
    run = driver.program.workspace.run
    assert run is not None
    other = make(qtbot, tmp_path / "other home")
    other.program.deeds.open_path(run.path)
    other.settle()
    assert other.head == 3
    assert any("another window" in text for text in other.messages)
    assert not other.program.actions["run"].isEnabled()
    other.program.player.run_n(1)
    assert other.head == 3
    driver.run(1)
    assert driver.head == 4
    take_down(other)


def test_a_run_that_was_killed_says_how_much_it_holds(driver: Driver, tmp_path: Path) -> None:
    driver.run(4)
    run = driver.program.workspace.run
    assert run is not None
    copy = tmp_path / "killed.grpo"
    for ending in ("", "-wal"):
        part = run.path.with_name(run.path.name + ending)
        if part.exists():
            copy.with_name(copy.name + ending).write_bytes(part.read_bytes())
    driver.program.deeds.open_path(copy)
    assert any("not closed properly" in text and "4 updates" in text for text in driver.messages)
    driver.run(1)
    assert driver.head == 5


def test_the_oldest_of_too_many_runs_go_only_when_asked(driver: Driver) -> None:
    for _ in range(4):
        driver.run(1)
        driver.program.actions["new_run"].trigger()
        driver.settle()
    driver.run(1)
    for old in driver.program.workspace.runs[:4]:
        old.let_go()
    driver.program.workspace.runs = driver.program.workspace.runs[-1:]
    driver.program.preferences = driver.program.preferences.replace(kept_runs=2)
    driver.program.offers.clean_up()
    assert len(list(driver.program.paths.runs.glob("*.grpo"))) == 5
    line = driver.program.window.messages.lines[-1]
    line.buttons[0].click()
    assert len(list(driver.program.paths.runs.glob("*.grpo"))) == 2


# -- explanations ----------------------------------------------------------------------------------------------------


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
        assert panel.check.text().endswith("agrees")


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
    assert window.panels["pipeline"].which.text() == "values of sample 5"  # type: ignore[attr-defined]
    assert table.current_cell()[0] == 4


# -- trouble ---------------------------------------------------------------------------------------------------------


def test_numbers_that_are_not_finite_stop_the_run_and_leave_a_way_back(driver: Driver) -> None:
    task = BanditTask(landscape="custom", custom=(1e9,) + (0.0,) * 9)
    objective = Objective(std="none", baseline="none")
    optimizer = Optimizer(learning_rate=0.0)
    driver.program.session.new_run(Settings(task=task, objective=objective, optimizer=optimizer))
    driver.run(2)
    driver.program.workspace.editing.edit({"optimizer.learning_rate": 1e3}, "Break it")
    driver.program.player.run_n(60)
    driver.qtbot.waitUntil(lambda: bool(driver.messages), timeout=10_000)
    stood = driver.head
    assert "not a finite number" in driver.messages[0]
    assert f"stands at update {stood}" in driver.messages[0]
    driver.program.workspace.editing.edit({"optimizer.learning_rate": 0.0}, "Mend it")
    driver.rest()
    driver.run(1)
    assert driver.head == stood + 1


@pytest.mark.parametrize("moment", [0, pytest.param(2, marks=pytest.mark.long)])
def test_every_command_runs_at_every_moment(driver: Driver, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getOpenFileName", lambda *_: ("", ""))
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getSaveFileName", lambda *_: ("", ""))
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getExistingDirectory", lambda *_: "")
    monkeypatch.setattr("PySide6.QtWidgets.QInputDialog.getText", lambda *_: ("", False))
    if moment:
        driver.run(moment)
    for name in [action.command.id for action in driver.program.actions]:
        if name in ("quit", "close_run") or name.startswith("layout."):
            continue
        driver.program.actions[name].trigger()
    driver.program.player.pause()
    driver.rest()
    driver.run(2)
    driver.program.window.setWindowState(Qt.WindowState.WindowNoState)
    driver.program.palette.hide()
    driver.program.sheet.hide()


def test_a_setting_of_the_other_kind_of_run_that_comes_too_late_changes_nothing(driver: Driver) -> None:
    controls = driver.program.window.panels["controls"]
    assert isinstance(controls, ControlsPanel)
    late = next(row for row in controls.rows if row.paths == ("task.held_out",))
    before = driver.program.workspace.editing.wanted
    late.edited.emit(late.paths, 3, None)
    assert driver.program.workspace.editing.wanted == before
    assert driver.messages == []


def test_everything_that_takes_the_focus_has_a_name(driver: Driver) -> None:
    driver.run(2)
    nameless = [
        widget
        for widget in driver.program.window.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.isVisible()
        and widget.focusProxy() is None
        and not isinstance(widget.parent(), QAbstractScrollArea)  # a viewport: its area has the name
        and not widget.accessibleName()
    ]
    named_by_text = [w for w in nameless if getattr(w, "text", lambda: "")()]
    assert [type(w).__name__ for w in nameless if w not in named_by_text] == []


def test_themes_and_sizes_change_while_it_runs(driver: Driver) -> None:
    driver.program.player.run()
    for theme in ("dark", "projector", "light"):
        driver.program.deeds.set_theme(theme)
        driver.program.deeds.zoom(1)
        driver.settle()
    driver.program.deeds.zoom(0)
    driver.rest()
    assert driver.head == 200


def test_closing_while_it_runs_at_full_speed_loses_nothing(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    one = make(qtbot, tmp_path / "home")
    one.program.player.set_length(None)
    one.program.player.run()
    qtbot.waitUntil(lambda: one.head > 30, timeout=10_000)
    seen = one.head
    run = one.program.workspace.run
    take_down(one)
    assert run is not None
    with RunReader.open(run.path) as reader:
        assert reader.meta.ended
        assert reader.last >= seen


@pytest.mark.parametrize("landscape", ["single_peak", "chain", "length"])
def test_every_door_leads_to_an_explanation_that_agrees(driver: Driver, landscape: str) -> None:
    driver.program.session.new_run(Settings(task=BanditTask(landscape=landscape, max_length=4)))
    driver.run(6)
    window, workspace = driver.program.window, driver.program.workspace
    for name in ("token_inspector", "step_detail", "explain"):
        window.docks[name].raise_()
        driver.settle()
    asked: list[Quantity] = []

    def note() -> None:
        if workspace.quantity is not None:
            asked.append(workspace.quantity)

    table = window.panels["step_detail"].table  # type: ignore[attr-defined]
    for column in table.table.columns:
        table.activated_cell.emit(3, column.key)
        note()
    for term in window.panels["pipeline"].strip.buttons:  # type: ignore[attr-defined]
        term.click()
        note()
    for action in range(2):
        window.panels["policy_bars"].plot.explained.emit(action)  # type: ignore[attr-defined]
        note()
    tokens = window.panels["token_inspector"]
    for place in range(tokens.tint.count()):  # type: ignore[attr-defined]
        tokens.tint.setCurrentIndex(place)  # type: ignore[attr-defined]
        tokens.tint.activated.emit(place)  # type: ignore[attr-defined]
        tokens.grid.activated.emit(2, 0)  # type: ignore[attr-defined]
        note()
    tokens.detail.show_token(workspace.view, 1, 0)  # type: ignore[attr-defined]
    asked += [quantity for _, _, _, quantity in tokens.detail._lines if quantity is not None]  # type: ignore[attr-defined]
    step = workspace.view.step.step
    assert step is not None
    assert len(asked) > 20
    for quantity in asked:
        assert explain(step, quantity).agrees, quantity
