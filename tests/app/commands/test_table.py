"""The table of commands is whole: every command has a name, a key of its own, a place, and does one thing."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtWidgets import QMainWindow

from app.commands.actions import Actions
from app.commands.command import Command, State, conflicts
from app.commands.table import commands

EXPECTED_KEYS = {
    "run": ("Space", "Ctrl+Space"), "step": (".",), "step_back": (",",), "stage": ("Shift+.",),
    "stage_back": ("Shift+,",), "explain": ("E",), "table_twin": ("T",), "undo": ("Ctrl+Z",), "quit": ("Ctrl+Q",),
    "shortcut_sheet": ("F1",), "palette": ("Ctrl+Shift+P",), "full_screen": ("F11",), "zoom_reset": ("Ctrl+0",),
    "go_start": ("Home",), "go_end": ("End",),
}  # fmt: skip


def test_no_two_commands_share_an_id_or_a_key_of_one_context(actions: Actions) -> None:
    assert conflicts(actions.commands) == ()


def test_every_command_has_a_title_a_tip_and_a_menu(actions: Actions) -> None:
    for command in actions.commands:
        assert command.text[0].isupper(), command.id
        assert "!" not in command.text + command.tip
        assert command.tip.endswith("."), command.id
        assert command.menu
        assert command.group in ("File", "Edit", "Run", "Go", "View", "Help")


def test_the_keys_are_those_that_were_promised(actions: Actions) -> None:
    for id, keys in EXPECTED_KEYS.items():
        assert actions[id].command.shortcuts[: len(keys)] == keys


def test_every_command_runs_exactly_one_method_of_the_window(window: QMainWindow, actions: Actions) -> None:
    seen = set()
    for action in actions:
        window.called.clear()  # type: ignore[attr-defined]
        action.trigger()
        (call,) = window.called  # type: ignore[attr-defined]
        assert action.command.context == "present" or call not in seen, action.command.id
        seen.add(call)
    assert ("zoom", (-1,)) in seen
    assert ("set_theme", ("projector",)) in seen
    assert ("set_layout", ("Mine",)) in seen
    assert ("toggle_panel", ("explain",)) in seen
    assert ("set_reduced_motion", (True,)) in seen


def test_a_command_that_cannot_run_says_why_and_does_not(window: QMainWindow, actions: Actions) -> None:
    actions.refresh(State(read_only="Another window writes this run."))
    blocked = {action.command.id: action.why for action in actions if action.why}
    assert {"undo", "redo", "explain", "table_twin", "copy_picture", "run", "run_n", "step", "save_as"} <= set(blocked)
    assert blocked["run"] == "Another window writes this run."
    assert all(why.endswith(".") for why in blocked.values())
    for id in blocked:
        actions[id].trigger()
        assert not actions[id].isEnabled()
        assert blocked[id] in actions[id].toolTip()
    assert window.called == []  # type: ignore[attr-defined]


def test_a_read_only_run_can_be_stepped_through_up_to_its_head(actions: Actions) -> None:
    actions.refresh(State(read_only="no", head=5, step=4))
    assert actions["step"].isEnabled()
    actions.refresh(State(read_only="no", head=5, step=5))
    assert not actions["step"].isEnabled()


def test_actions_follow_the_state(actions: Actions) -> None:
    assert actions["run"].text() == "Run"
    actions.refresh(State(running=True, theme="dark", full_screen=True, panels=frozenset(["explain"]), layout="Mine"))
    assert actions["run"].text() == "Pause"
    on = {action.command.id for action in actions if action.isChecked()}
    assert on == {"theme.dark", "full_screen", "panel.explain", "layout.Mine"}


def test_the_state_can_be_compared_and_is_frozen() -> None:
    assert State() == State()
    with pytest.raises(dataclasses.FrozenInstanceError):
        State().running = True  # type: ignore[misc]


def test_conflicts_are_found(window: QMainWindow) -> None:
    def made(id: str, *keys: str, context: str = "app") -> Command:
        return Command(id=id, text=id, menu="Run", run=print, shortcuts=keys, context=context)  # type: ignore[arg-type]

    (said,) = conflicts([made("a", "Ctrl+A"), made("b", "ctrl+a")])
    assert said == "a and b share the shortcut ctrl+a in context app."
    assert conflicts([made("a", "B"), made("b", "B", context="present")]) == ()
    assert conflicts([made("a"), made("a")]) == ("Two commands have the id a.",)
    assert conflicts([made("a", "Nonsense+")]) == ("The shortcut Nonsense+ of a is not a key.",)
    with pytest.raises(ValueError, match="share the shortcut"):
        Actions(window, [made("a", "F5"), made("b", "F5")])


def test_commands_can_be_replaced_when_layouts_change(window: QMainWindow, actions: Actions) -> None:
    told: list[None] = []
    actions.rebuilt.connect(lambda: told.append(None))
    before = len(window.actions())
    actions.set_commands([command for command in commands(window) if command.id != "layout.Mine"])  # type: ignore[arg-type]
    assert len(told) == 1
    assert len(window.actions()) == before - 1
    assert "layout.Mine" not in actions.by_id
    assert actions["undo"].isEnabled()
