"""What another process has to know: every command is accounted for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from app.training.restart_state import RestartState
from grpo_core.config import Settings
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin, Close, Command, Look, OneStep, Pause, Run, Shutdown


@pytest.mark.parametrize(
    "command",
    [
        Run(run_id="a", updates=None),
        OneStep(run_id="a"),
        Pause(run_id="a"),
        Close(run_id="a"),
        Look(run_id="a"),
        Shutdown(),
    ],
)
def test_what_is_carried_out_once_leaves_nothing_to_repeat(command: Command) -> None:
    state = RestartState()
    state.note(command)
    assert (state.begins, state.current, state.questions, state.tokens) == ({}, "", [], set())


def begin(order: int) -> Begin:
    settings = Settings()
    return Begin(run_id="a", order=order, path=Path("a.grpo"), settings=settings, buffer=Buffer("a", settings))


def test_a_run_that_has_begun_again_since_it_was_closed_is_not_forgotten() -> None:
    state = RestartState()
    state.note(begin(4))
    state.note(again := begin(6))
    state.closed("a", 4)  # it was closed for the second beginning
    assert state.begins == {"a": again}
    state.closed("a", 7)
    assert state.begins == {}


def test_a_command_of_which_nobody_said_whether_it_outlives_a_process_is_an_error() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Unheard(Command):
        pass

    with pytest.raises(TypeError, match="outlives a process"):
        RestartState().note(Unheard())
