"""The table of commands is complete: every command has a name, a unique key, a place, and does one thing."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QFileDialog, QInputDialog, QMainWindow

from app.commands.actions import Actions
from app.commands.command import Command, conflicts
from app.workspace.player import Mode
from tests.app.commands.conftest import Recorder
from tests.app.conftest import Driver
from tests.app.stories.hands import panel

pytestmark = pytest.mark.one_window

EXPECTED_KEYS = {
    "run": ("Space", "Ctrl+Space"),
    "step": (".",),
    "step_back": (",",),
    "stage": ("Shift+.",),
    "stage_back": ("Shift+,",),
    "explain": ("E",),
    "table_twin": ("T",),
    "undo": ("Ctrl+Z",),
    "quit": ("Ctrl+Q",),
    "shortcut_sheet": ("F1",),
    "palette": ("Ctrl+Shift+P",),
    "full_screen": ("F11",),
    "zoom_reset": ("Ctrl+0",),
    "go_start": ("Home",),
    "go_end": ("End",),
}


def test_no_two_commands_share_an_id_or_a_key_of_one_context(actions: Actions) -> None:
    assert conflicts(actions.commands) == ()


def test_every_command_has_a_title_a_tip_and_a_menu(actions: Actions) -> None:
    for command in actions.commands:
        assert not command.text[0].islower(), command.id
        assert "!" not in command.text + command.tip
        assert command.tip.endswith("."), command.id
        assert command.menu
        assert command.group in ("File", "Edit", "Run", "Go", "View", "Lessons", "Help")


def test_the_keys_are_those_that_were_promised(actions: Actions) -> None:
    for id, keys in EXPECTED_KEYS.items():
        assert actions[id].command.shortcuts[: len(keys)] == keys


@pytest.mark.usefixtures("without_torch")
@pytest.mark.own_window
def test_the_python_that_is_chosen_is_kept_as_the_link_that_it_is(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Any] = []

    def dialog(*arguments: Any) -> tuple[str, str]:
        options.append(arguments[-1])
        return "/home/me/grpo-torch/bin/python", ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", dialog)
    driver.program.actions.by_id["torch_python"].trigger()
    assert QFileDialog.Option.DontResolveSymlinks in options[0], "what it points to is not in the environment"
    program = driver.program
    assert program.pythons.chosen == program.preferences.current.python == "/home/me/grpo-torch/bin/python"
    assert program.messages.lines[-1].text.endswith("are trained in /home/me/grpo-torch/bin/python.")


def test_every_command_runs_in_a_window_without_complaint(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    for ask in ("getOpenFileName", "getSaveFileName"):
        monkeypatch.setattr(QFileDialog, ask, lambda *arguments: ("", ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *arguments: "")
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: True)
    monkeypatch.setattr(QInputDialog, "getText", lambda *arguments: ("", False))
    monkeypatch.setattr(QInputDialog, "getInt", lambda *arguments: (0, False))
    program = driver.program
    driver.run(3)
    ran = set()
    for id in program.actions.by_id:
        if id == "quit":
            continue
        program.actions[id].trigger()
        program.palette.hide()
        program.part("teaching").presenter.blank.lift()
        QApplication.processEvents()
        ran.add(id)
    assert ran | {"quit"} == set(program.actions.by_id)
    assert not program.window.may_close
    program.sheet.hide()
    program.player.pause()


@pytest.mark.own_window
def test_quit_closes_the_window(driver: Driver) -> None:
    driver.program.actions["quit"].trigger()
    driver.qtbot.waitUntil(lambda: driver.program.window.may_close)


def test_a_command_that_cannot_run_says_why_and_does_not(driver: Driver) -> None:
    program = driver.program
    program.workspace.view.run.read_only = "Another window writes this run."
    focused = QApplication.focusWidget()
    if focused is not None:
        focused.clearFocus()
    driver.settle()
    blocked = {action.command.id: action.why for action in program.actions if action.why}
    assert {"undo", "redo", "explain", "table_twin", "copy_picture", "run", "run_n", "step", "save_as"} <= set(blocked)
    assert blocked["run"] == "Another window writes this run."
    assert all(why.endswith(".") for why in blocked.values())
    for id in blocked:
        program.actions[id].trigger()
        assert not program.actions[id].isEnabled()
        assert blocked[id] in program.actions[id].toolTip()
    assert program.player.mode is Mode.RESTING
    assert driver.messages == []


def test_a_command_whose_state_is_shown_late_does_not_run_if_it_cannot(driver: Driver) -> None:
    program = driver.program
    driver.run(2)
    assert program.actions["step"].isEnabled() and program.workspace.run is not None
    program.workspace.run.read_only = "Another window writes this run."
    program.actions["step"].trigger()
    assert program.player.mode is Mode.RESTING and driver.head == 2


def test_a_read_only_run_can_be_stepped_through_up_to_its_head(driver: Driver) -> None:
    driver.run(5)
    driver.program.workspace.view.run.read_only = "no"
    driver.program.workspace.move_to(4)
    driver.settle()
    assert driver.program.actions["step"].isEnabled()
    driver.program.workspace.move_to(5)
    driver.settle()
    assert not driver.program.actions["step"].isEnabled()


def test_actions_follow_the_program(driver: Driver) -> None:
    program, actions = driver.program, driver.program.actions
    assert actions["run"].text() == "Run"
    program.look.set("dark")
    program.window.setWindowState(Qt.WindowState.WindowFullScreen)
    panel(driver, "explain")
    program.layouts.choose("Compare")
    program.player.set_speed(5)  # at full speed it is over before the next frame
    program.player.run()
    driver.qtbot.waitUntil(lambda: program.player.busy)
    driver.settle()
    assert actions["run"].text() == "Pause"
    on = {action.command.id for action in actions if action.isChecked()}
    assert {"theme.dark", "full_screen", "panel.explain", "layout.Compare"} <= on
    assert not {"theme.light", "layout.Bandit", "panel.breakpoints", "present"} & on
    program.player.pause()
    driver.rest()
    assert actions["run"].text() == "Run"


def test_an_action_is_changed_only_where_its_command_stands_differently(window: Recorder, actions: Actions) -> None:
    changed: list[str] = []
    for action in actions:
        action.changed.connect(lambda id=action.command.id: changed.append(id))
    actions.refresh()
    assert changed == []
    window.stand.blocked["undo"] = "No setting has been changed."
    actions.refresh()
    assert set(changed) == {"undo"}


def test_conflicts_are_found(window: QMainWindow) -> None:
    def made(id: str, *keys: str, context: Any = "app") -> Command:
        return Command(id=id, text=id, menu="Run", run=print, shortcuts=keys, context=context)

    (said,) = conflicts([made("a", "Ctrl+A"), made("b", "ctrl+a")])
    assert said == "a and b share the shortcut ctrl+a in context app."
    assert conflicts([made("a", "B"), made("b", "B", context="present")]) == ()
    assert conflicts([made("a"), made("a")]) == ("Two commands have the id a.",)
    assert conflicts([made("a", "Nonsense+")]) == ("The shortcut Nonsense+ of a is not a key.",)
    with pytest.raises(ValueError, match="share the shortcut"):
        Actions(window, [made("a", "F5"), made("b", "F5")])


def test_commands_can_be_replaced_when_layouts_change(
    window: Recorder, actions: Actions, declared: tuple[Command, ...]
) -> None:
    told: list[None] = []
    actions.rebuilt.connect(lambda: told.append(None))
    before = len(window.actions())
    actions.set_commands([command for command in window.commands(declared) if command.id != "layout.Mine"])
    assert len(told) == 1
    assert len(window.actions()) == before - 1
    assert "layout.Mine" not in actions.by_id
    assert actions["undo"].isEnabled()
