"""What another process has to know: every command is accounted for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.training.restart_state import RestartState
from grpo_core.host.commands import Close, Command, Look, OneStep, Pause, Run, Shutdown


@pytest.mark.parametrize(
    "command",
    [Run(run_id="a", updates=None), OneStep(run_id="a"), Pause(run_id="a"), Close(run_id="a"), Look(), Shutdown()],
)
def test_what_is_carried_out_once_leaves_nothing_to_repeat(command: Command) -> None:
    state = RestartState()
    state.note(command)
    assert (state.begins, state.current, state.questions, state.tokens) == ({}, "", [], set())


def test_a_command_of_which_nobody_said_whether_it_outlives_a_process_is_an_error() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Unheard(Command):
        pass

    with pytest.raises(TypeError, match="outlives a process"):
        RestartState().note(Unheard())
