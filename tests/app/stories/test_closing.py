"""Closing the window in every state, and what the next start finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.settings.preferences import load_preferences
from grpo_core.runs import library
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import panel, row_of


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
