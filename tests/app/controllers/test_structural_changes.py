"""Changes that require another run: the run in training is always the one that the controls describe."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from app.panels.controls.kinds import with_prompt_file
from app.training.controller import State
from app.workspace.run_handle import RunHandle
from grpo_core.config import folder_settings, language_settings
from tests.app.conftest import Driver
from tests.app.stories.hands import row_of, type_into

pytestmark = pytest.mark.one_window


def choose(driver: Driver, path: str, value: str) -> None:
    """Choose a value in a row of the controls."""
    box = row_of(driver, path).box
    box.setCurrentIndex(box.findData(value))
    box.activated.emit(box.currentIndex())


def shown(driver: Driver) -> RunHandle:
    return driver.program.workspace.view.run


def edit(driver: Driver, **changes: object) -> None:
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    driver.program.workspace.editing.edit(paths, "Change")


def wait(driver: Driver) -> None:
    """Wait until the changed settings have a run."""
    driver.qtbot.waitUntil(lambda: not driver.program.workspace.editing.pending)
    driver.settle()


@pytest.mark.own_window  # it names runs by how many there were
def test_the_task_chosen_before_the_first_update_is_the_one_that_trains(driver: Driver) -> None:
    choose(driver, "task.landscape", "double_peak")
    driver.run(1)
    assert driver.program.workspace.view.step.settings.bandit.landscape == "double_peak"
    assert [run.title for run in driver.program.workspace.runs] == ["Run 1"]


def test_a_key_pressed_at_once_runs_what_was_chosen(driver: Driver) -> None:
    choose(driver, "task.landscape", "double_peak")
    driver.program.actions["step"].trigger()
    driver.qtbot.waitUntil(lambda: driver.head == 1)
    driver.rest()
    assert driver.program.workspace.view.step.settings.bandit.landscape == "double_peak"


def test_without_updates_the_run_is_replaced_and_undo_brings_the_settings_back(driver: Driver) -> None:
    first, workspace = shown(driver), driver.program.workspace
    edit(driver, task__actions=6)
    wait(driver)
    assert (len(workspace.runs), shown(driver) is first) == (1, False)
    assert shown(driver).origin.settings.bandit.actions == 6
    workspace.editing.undo.undo()
    wait(driver)
    assert (len(workspace.runs), shown(driver).origin.settings.bandit.actions) == (1, 10)
    workspace.editing.undo.redo()
    wait(driver)
    assert (len(workspace.runs), shown(driver).origin.settings.bandit.actions) == (1, 6)


@pytest.mark.own_window  # it names runs by how many there were
def test_with_updates_a_new_run_begins_and_undo_returns_to_the_old_one(driver: Driver) -> None:
    driver.run(3)
    first, workspace = shown(driver), driver.program.workspace
    edit(driver, objective__beta=0.2)
    edit(driver, task__actions=6)
    wait(driver)
    second = shown(driver)
    assert workspace.runs == [first, second]
    assert second.origin.settings.objective.beta == 0.2
    assert any("Run 1 stays in the list" in text for text in driver.messages)
    driver.run(2)
    workspace.editing.undo.undo()
    wait(driver)
    assert shown(driver) is first and driver.head == 3
    assert workspace.editing.settings.objective.beta == 0.2
    workspace.editing.undo.undo()
    assert workspace.editing.settings.objective.beta == 0.04
    workspace.editing.undo.redo()
    workspace.editing.undo.redo()
    wait(driver)
    assert shown(driver) is second and driver.head == 2
    assert workspace.runs == [first, second]


def test_changes_that_follow_each_other_make_one_run_and_one_step_of_undo(driver: Driver) -> None:
    driver.run(1)
    first, workspace = shown(driver), driver.program.workspace
    for actions in (9, 8, 7, 6):
        edit(driver, task__actions=actions)
    edit(driver, objective__beta=0.3, seed=8)
    assert shown(driver) is first
    wait(driver)
    assert len(workspace.runs) == 2
    assert (shown(driver).origin.settings.bandit.actions, shown(driver).origin.settings.seed) == (6, 8)
    workspace.editing.undo.undo()
    wait(driver)
    assert shown(driver) is first and workspace.runs == [first], "the new run had no update"
    assert not workspace.editing.undo.canUndo()


def test_a_drag_back_to_where_it_began_returns_to_the_run(driver: Driver) -> None:
    driver.run(1)
    first, workspace = shown(driver), driver.program.workspace
    workspace.editing.edit({"task.actions": 6}, "Drag", 1)
    wait(driver)
    assert shown(driver) is not first
    workspace.editing.edit({"task.actions": 10}, "Drag", 1)
    wait(driver)
    assert workspace.runs == [first] and shown(driver) is first


def test_what_trains_is_paused_first(driver: Driver) -> None:
    program = driver.program
    program.player.set_speed(30)
    program.player.set_length(None)
    program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head >= 2)
    first = shown(driver)
    edit(driver, seed=8)
    driver.qtbot.waitUntil(lambda: program.controller.state is State.PAUSED)
    wait(driver)
    assert (shown(driver) is first, driver.head, shown(driver).origin.settings.seed) == (False, 0, 8)
    assert not program.player.busy
    assert first.head >= 2


def test_another_kind_of_policy_can_be_undone_and_leaves_no_empty_run(driver: Driver) -> None:
    workspace = driver.program.workspace
    driver.program.runs.new_run_of(language_settings())
    assert [run.origin.settings.is_language for run in workspace.runs] == [True]
    workspace.editing.undo.undo()
    wait(driver)
    assert [run.origin.settings.is_language for run in workspace.runs] == [False]
    assert driver.program.preferences.current.layout == "Bandit"


def test_a_change_for_which_there_can_be_no_run_is_reversed_and_said(driver: Driver, tmp_path: Path) -> None:
    workspace = driver.program.workspace
    driver.program.runs.new_run_of(language_settings())
    run = shown(driver)
    edit(driver, task__problem="own", task__file=str(tmp_path / "none.csv"))
    wait(driver)
    assert shown(driver) is run
    assert workspace.editing.wanted == run.origin.settings
    assert any("none.csv" in text for text in driver.messages)


def test_own_prompts_are_chosen_with_their_file(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.program.runs.new_run_of(language_settings())
    driver.settle()
    assert row_of(driver, "task.file").isHidden()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    choose(driver, "task.problem", "own")
    driver.settle()
    assert row_of(driver, "task.problem").box.currentData() == "arithmetic", "no file, no change"
    prompts = tmp_path / "mine.csv"
    prompts.write_text("prompt,answer\n1+1=,2\n2+2=,4\n3+3=,6\n", encoding="utf-8")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(prompts), ""))
    choose(driver, "task.problem", "own")
    wait(driver)
    settings = shown(driver).origin.settings
    assert (settings.language.problem, settings.language.file) == ("own", str(prompts)), driver.messages
    assert not row_of(driver, "task.file").isHidden() and not row_of(driver, "task.checker").isHidden()


def test_own_prompts_of_a_model_from_a_folder_are_compared_by_their_final_answer(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("train.parquet", ""))
    changes = with_prompt_file({"task.problem": "questions"}, folder_settings("here"), driver.program.window)
    assert changes == {"task.problem": "questions", "task.file": "train.parquet", "task.checker": "final"}
    sums = {"task.problem": "sums"}
    assert with_prompt_file(sums, folder_settings("here"), driver.program.window) == sums


@pytest.mark.long
def test_a_seed_typed_before_the_first_update_leaves_one_run(driver: Driver) -> None:
    for seed in ("41", "42"):
        type_into(driver.program.transport.seed, seed)
    assert [run.origin.settings.seed for run in driver.program.workspace.runs] == [42]
