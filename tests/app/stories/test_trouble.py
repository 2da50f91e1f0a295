"""Errors, actions at the wrong moment, and closing the window in every state, with what the next start finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.panel_registry import CONTROLS
from app.settings.preferences import load_preferences
from grpo_core.config import BanditTask, Objective, Optimizer, Settings
from grpo_core.explain import Quantity, explain
from grpo_core.runs import library
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import panel, row_of


def test_numbers_that_are_not_finite_stop_the_run_and_leave_a_way_back(driver: Driver) -> None:
    task = BanditTask(landscape="custom", custom=(1e9,) + (0.0,) * 9)
    objective = Objective(std="none", baseline="none")
    optimizer = Optimizer(learning_rate=0.0)
    driver.program.run_manager.new_run(Settings(task=task, objective=objective, optimizer=optimizer))
    driver.run(2)
    driver.program.workspace.editing.edit({"optimizer.learning_rate": 1e3}, "Break it")
    driver.program.player.run_n(60)
    driver.qtbot.waitUntil(lambda: bool(driver.messages))
    stood = driver.head
    assert "not a finite number" in driver.messages[0]
    assert f"is at update {stood}" in driver.messages[0]
    driver.program.workspace.editing.edit({"optimizer.learning_rate": 0.0}, "Mend it")
    driver.rest()
    driver.run(1)
    assert driver.head == stood + 1


@pytest.mark.long
@pytest.mark.parametrize("moment", [0, pytest.param(2, marks=pytest.mark.long)])
def test_every_command_runs_at_every_moment(driver: Driver, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getOpenFileName", lambda *_: ("", ""))
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getSaveFileName", lambda *_: ("", ""))
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getExistingDirectory", lambda *_: "")
    monkeypatch.setattr("PySide6.QtWidgets.QInputDialog.getText", lambda *_: ("", False))
    monkeypatch.setattr("PySide6.QtWidgets.QInputDialog.getInt", lambda *_: (0, False))
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
    controls = driver.program.window.panels.of(CONTROLS)
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
        driver.program.look.set(theme)
        driver.program.look.zoom(1)
        driver.settle()
    driver.program.look.zoom(0)
    driver.rest()
    assert driver.head == 200


@pytest.mark.quick_cases("chain")
@pytest.mark.parametrize("landscape", ["single_peak", "chain", "length"])
def test_every_door_leads_to_an_explanation_that_agrees(driver: Driver, landscape: str) -> None:
    driver.program.run_manager.new_run(Settings(task=BanditTask(landscape=landscape, max_length=4)))
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
        window.panels["policy_bars"].plot.activated.emit(action)  # type: ignore[attr-defined]
        note()
    tokens = window.panels["token_inspector"]
    for place in range(tokens.choices.tint.count()):  # type: ignore[attr-defined]
        tokens.choices.tint.setCurrentIndex(place)  # type: ignore[attr-defined]
        tokens.choices.tint.activated.emit(place)  # type: ignore[attr-defined]
        tokens.grid.activated.emit(2, 0)  # type: ignore[attr-defined]
        note()
    tokens.detail.show_token(workspace.view, 1, 0)  # type: ignore[attr-defined]
    asked += [quantity for quantity in tokens.detail.quantities if quantity is not None]  # type: ignore[attr-defined]
    step = workspace.view.step.step
    assert step is not None
    assert len(asked) > 20
    for quantity in asked:
        assert explain(step, quantity).agrees, quantity


def idle(driver: Driver) -> None:
    """Do nothing: the state after a start."""


def running(driver: Driver) -> None:
    driver.program.player.set_length(None)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head > 5)


def waiting_for_the_next_update(driver: Driver) -> None:
    driver.program.player.set_speed(1.0)
    running_slowly = driver.program.player
    running_slowly.run()
    driver.qtbot.waitUntil(lambda: driver.head > 0)


def replaying(driver: Driver) -> None:
    driver.run(20)
    driver.program.workspace.move_to(3)
    driver.program.player.run()


def preparing(driver: Driver) -> None:
    driver.program.player.run()


def branched(driver: Driver) -> None:
    driver.run(5)
    driver.program.run_manager.branch(3)


def elsewhere(driver: Driver) -> None:
    running(driver)
    driver.program.runs.new_run()
    driver.settle()


def edited(driver: Driver) -> None:
    driver.run(2)
    row_of(driver, "objective.beta").field.setFocus()
    driver.program.workspace.editing.edit({"seed": 9, "objective.beta": 0.3}, "Change")
    driver.program.window.docks["explain"].setFloating(True)
    driver.program.palette.open_fresh()
    driver.program.sheet.open_fresh()


@pytest.mark.quick_cases("running", "replaying", "branched", "preparing")
@pytest.mark.parametrize(
    "state", [idle, running, waiting_for_the_next_update, replaying, preparing, branched, elsewhere, edited]
)
def test_closing_in_every_state_leaves_whole_files(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, state: Callable[[Driver], None]
) -> None:
    driver = make(qtbot, tmp_path)
    state(driver)
    heads = {run.path: run.head for run in driver.program.workspace.runs if run.path.exists()}
    folder = driver.program.paths.runs
    take_down(driver)
    for path, head in heads.items():
        with RunReader.open(path) as reader:
            assert reader.last >= head
            assert reader.meta.ended
    assert {path.suffix for path in folder.iterdir()} <= {".grpo"}
    assert all(entry.error is None for entry in library.entries(folder))


def test_the_layout_survives_a_restart_and_can_be_reset(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    first = make(qtbot, tmp_path)
    first.program.window.toggle("kl_over_beta")
    first.program.look.set("dark")
    first.program.look.zoom(1)
    panel(first, "glossary")
    first.settle()
    docks = first.program.window.docks
    hidden = {name for name, dock in docks.items() if not dock.isVisible()}
    preferences = first.program.paths.preferences
    take_down(first)
    kept, said = load_preferences(preferences)
    assert (kept.theme, kept.scale, list(said)) == ("dark", 1.1, [])
    second = make(qtbot, tmp_path, theme=kept.theme, scale=kept.scale)
    assert second.program.layout_files.restore(second.program.window) is None
    second.settle()
    docks = second.program.window.docks
    assert {name for name, dock in docks.items() if not dock.isVisible()} == hidden
    second.program.actions["reset_layout"].trigger()
    second.settle()
    assert docks["kl_over_beta"].isVisible()
    assert not docks["glossary"].isVisible()
    take_down(second)


def test_a_second_press_on_close_does_no_harm(driver: Driver) -> None:
    running(driver)
    driver.program.shutdown.close()
    driver.program.shutdown.close()
    assert driver.program.window.may_close


def test_the_window_closes_and_everything_is_saved_though_one_part_cannot_end(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = driver.program
    driver.run(2)

    def fails() -> None:
        raise RuntimeError("cannot end")

    monkeypatch.setattr(panel(driver, "training_history"), "dispose", fails)
    monkeypatch.setattr(program.shutdown, "closers", (fails, *program.shutdown.closers))
    with driver.qtbot.captureExceptions() as raised:
        program.window.close()
        driver.qtbot.waitUntil(lambda: program.window.may_close)
    assert [str(error) for _, error, _ in raised] == ["cannot end"], "it is reported"
    assert program.workspace.run is not None
    assert load_preferences(program.paths.preferences)[0].last_run == str(program.workspace.run.path)
