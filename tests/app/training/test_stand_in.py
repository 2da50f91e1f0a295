"""Commands while there is no process: what is carried out at once, and what takes another process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.training.stand_in import StandIn
from grpo_core.config import Settings
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import (
    Begin,
    Close,
    Command,
    Commit,
    Look,
    OneStep,
    Pause,
    Run,
    SetBreakpoints,
    SetSettings,
    SetSpeed,
    Shutdown,
)
from grpo_core.host.reports import Report, State
from grpo_core.host.run_output import run_writer
from grpo_core.questions import AnyAnswer, AnyQuestion


class Reported:
    """An outlet that keeps what it is given."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.sentences: list[str] = []
        self.tokens: list[int] = []

    def fresh(self, buffer: Buffer) -> None:
        """Updates have arrived."""

    def report(self, report: Report) -> None:
        self.reports.append(report)

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        raise AssertionError(f"nobody has asked {question!r}")

    def tell(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def done(self, token: int) -> None:
        self.tokens.append(token)


@dataclass(frozen=True, kw_only=True)
class Unknown(Command):
    """A command that no host knows."""


def begin(folder: Path, run_id: str = "a", order: int = 1) -> Begin:
    settings = Settings()
    return Begin(
        run_id=run_id, order=order, path=folder / f"{run_id}.grpo", settings=settings, buffer=Buffer(run_id, settings)
    )


@pytest.fixture
def outlet() -> Reported:
    return Reported()


def obeyed(outlet: Reported, *commands: Command) -> list[Command]:
    """What another process has to carry out for the last of ``commands``."""
    stand_in, remaining = StandIn(outlet, run_writer), list[Command]()
    for command in commands:
        stand_in.note(command)
        remaining = [*stand_in.obey(command)]
    return remaining


@pytest.mark.parametrize("command", [Run(run_id="a", updates=3), OneStep(run_id="a")])
def test_a_run_that_is_to_go_on_begins_again_as_it_was_set(command: Command, outlet: Reported, tmp_path: Path) -> None:
    begun, turned = begin(tmp_path), Settings().replace({"objective.beta": 0.5})
    remaining = obeyed(outlet, begun, SetSettings(run_id="a", settings=turned), command)
    assert remaining == [replace(begun, settings=turned), Look(run_id="a"), command]
    assert outlet.reports == []


def test_a_new_run_closes_the_one_before(outlet: Reported, tmp_path: Path) -> None:
    second = begin(tmp_path, "b", order=2)
    assert second in obeyed(outlet, begin(tmp_path), second)
    assert [(report.closed, report.state, report.order) for report in outlet.reports] == [("a", State.IDLE, 2)]


@pytest.mark.parametrize(
    ("command", "states"),
    [
        (Run(run_id="another", updates=None), []),
        (Pause(run_id="a"), [State.FAILED]),
        (Close(run_id="a"), [State.IDLE]),
        (Close(run_id="another"), [State.IDLE]),
        (Shutdown(), [State.IDLE]),
        (Look(run_id="a"), []),
    ],
)
def test_what_moves_no_run_takes_no_process(
    command: Command, states: list[State], outlet: Reported, tmp_path: Path
) -> None:
    assert obeyed(outlet, begin(tmp_path), command) == []
    assert [report.state for report in outlet.reports] == states


@pytest.mark.parametrize("leaving", [False, True])
def test_after_an_unexpected_end_no_run_moves_by_itself(leaving: bool, outlet: Reported, tmp_path: Path) -> None:
    stand_in, fast = StandIn(outlet, run_writer), SetSpeed(speed=None)
    unheard = [begin(tmp_path), fast, Run(run_id="a", updates=3), Commit(run_id="a", token=4)]
    unheard += [Shutdown()] if leaving else []
    for command in unheard:
        stand_in.note(command)
    remaining = stand_in.take_over("It has ended.", unheard)
    assert remaining == ([Shutdown()] if leaving else [fast])
    assert [report.state for report in outlet.reports] == ([] if leaving else [State.FAILED])
    assert outlet.tokens == [4], "who waits for the commit is let go"


def test_who_waits_for_a_commit_is_let_go(outlet: Reported, tmp_path: Path) -> None:
    assert obeyed(outlet, begin(tmp_path), Commit(run_id="a", token=7)) == []
    assert outlet.tokens == [7]


def test_a_command_that_no_host_knows_is_an_error(outlet: Reported) -> None:
    with pytest.raises(TypeError, match="knows no command"):
        StandIn(outlet, run_writer).obey(Unknown())


@pytest.mark.parametrize(
    "command",
    [
        Run(run_id="a", updates=None),
        OneStep(run_id="a"),
        Pause(run_id="a"),
        Close(run_id="a"),
        Look(run_id="a"),
        Shutdown(),
        SetSpeed(speed=2.0),
        SetBreakpoints(breakpoints=()),
    ],
)
def test_what_is_carried_out_once_leaves_nothing_to_repeat(command: Command, outlet: Reported) -> None:
    stand_in = StandIn(outlet, run_writer)
    stand_in.note(command)
    assert (stand_in.begins, stand_in.current, stand_in.awaited) == ({}, None, [])


def test_a_run_that_has_begun_again_since_it_was_closed_is_not_forgotten(outlet: Reported, tmp_path: Path) -> None:
    stand_in = StandIn(outlet, run_writer)
    stand_in.note(begin(tmp_path, order=4))
    stand_in.note(again := begin(tmp_path, order=6))
    stand_in.closed("a", 4)  # it was closed for the second beginning
    assert stand_in.begins == {"a": again}
    stand_in.closed("a", 7)
    assert stand_in.begins == {}


def test_a_command_of_which_nobody_said_whether_it_outlives_a_process_is_an_error(outlet: Reported) -> None:
    with pytest.raises(TypeError, match="outlives a process"):
        StandIn(outlet, run_writer).note(Unknown())
