"""Commands without a process: which are carried out at once, and which start another process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from app.training.deadlines import Phase
from app.training.host import Host
from grpo_core.breakpoints import Breakpoint
from grpo_core.config import Settings
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import (
    Ask,
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
    Settle,
    Shutdown,
)
from grpo_core.host.reports import Report, State
from grpo_core.progress import Progress
from grpo_core.questions import AnyAnswer, AnyQuestion, FirstAnswers
from grpo_core.runs.run_file import RunReader


class Reported:
    """An outlet that records everything it receives."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.sentences: list[str] = []
        self.tokens: list[int] = []
        self.answers: list[tuple[AnyQuestion, AnyAnswer | str]] = []

    def fresh(self, buffer: Buffer) -> None:
        """Record the arrival of updates."""

    def report(self, report: Report) -> None:
        self.reports.append(report)

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        self.answers.append((question, answer))

    def tell(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def done(self, token: int) -> None:
        self.tokens.append(token)

    def progress(self, run_id: str, progress: Progress) -> None:
        """Record the progress of an update."""


@dataclass(frozen=True, kw_only=True)
class Unknown(Command):
    """A command that no host knows."""


def begin(folder: Path, run_id: str = "a", order: int = 1) -> Begin:
    settings = Settings()
    return Begin(
        run_id=run_id, order=order, path=folder / f"{run_id}.grpo", settings=settings, buffer=Buffer(run_id, settings)
    )


def turn(host: Host, until: Callable[[], bool]) -> None:
    """Let the host advance until the condition is true."""
    while not until():
        connections = [] if host.connection is None else [host.connection]
        wait(connections, 60 if host.rest() is None else host.rest())
        host.advance()


def kill(host: Host) -> None:
    """Kill the host's process, and let the host notice."""
    assert host.pid is not None
    os.kill(host.pid, signal.SIGKILL)
    turn(host, lambda: host.phase is Phase.ABSENT)


@pytest.fixture
def outlet() -> Reported:
    return Reported()


@pytest.fixture
def host(outlet: Reported) -> Iterator[Host]:
    """A host whose process is starting."""
    host = Host(outlet)
    host.start()
    yield host
    if not host.ended:
        host.obey([Shutdown(order=99)])
        turn(host, lambda: host.ended)


@pytest.fixture
def left(host: Host, outlet: Reported, tmp_path: Path) -> Host:
    """A host whose process was killed after beginning the run “a”. ``outlet`` has been cleared of the reports."""
    host.obey([begin(tmp_path)])
    turn(host, lambda: bool(outlet.reports))
    kill(host)
    assert [(report.state, report.order) for report in outlet.reports[1:]] == [(State.FAILED, 1)] * 2
    outlet.reports.clear()
    return host


@pytest.mark.parametrize("command", [Run(run_id="a", updates=3, order=2), OneStep(run_id="a", order=2)])
def test_a_run_that_is_to_go_on_begins_again_as_it_was_set(
    command: Command, left: Host, outlet: Reported, tmp_path: Path
) -> None:
    turned = Settings().replace({"objective.beta": 0.5})
    left.obey([SetBreakpoints(breakpoints=(Breakpoint(series="entropy", value=-1.0),))])
    left.obey([SetSettings(run_id="a", settings=turned), command])
    assert left.phase is Phase.STARTING
    turn(left, lambda: bool(outlet.reports) and outlet.reports[-1].state is State.PAUSED)
    assert outlet.reports[-1].reached, "the breakpoints hold in another process"
    left.obey([Close(run_id="a", order=3)])
    turn(left, lambda: outlet.reports[-1].order == 3)
    with RunReader.open(tmp_path / "a.grpo") as reader:
        assert (reader.last, reader.step(1).settings) == (1, turned)


def test_a_new_run_closes_the_one_before(left: Host, outlet: Reported, tmp_path: Path) -> None:
    left.obey([begin(tmp_path, "b", order=2)])
    assert left.phase is Phase.STARTING
    assert [(report.closed, report.state) for report in outlet.reports] == [("a", State.IDLE)]
    turn(left, lambda: outlet.reports[-1].order == 2)
    assert (outlet.reports[-1].run_id, outlet.reports[-1].state) == ("b", State.PAUSED)


@pytest.mark.parametrize(
    ("command", "states"),
    [
        (Run(run_id="another", updates=None), []),
        (Pause(run_id="a", order=2), [State.FAILED]),
        (Close(run_id="a", order=2), [State.IDLE, State.IDLE]),
        (Shutdown(order=2), [State.IDLE, State.IDLE]),
        (Look(run_id="a"), []),
        (SetSpeed(speed=2.0), []),
        (SetSettings(run_id="a", settings=Settings()), []),
    ],
)
def test_what_moves_no_run_takes_no_process(
    command: Command, states: list[State], left: Host, outlet: Reported
) -> None:
    left.obey([command])
    assert left.phase is (Phase.ENDED if isinstance(command, Shutdown) else Phase.ABSENT)
    assert [report.state for report in outlet.reports] == states
    assert [report.closed for report in outlet.reports if report.closed] == ["a"] * (State.IDLE in states)


@pytest.mark.parametrize("leaving", [False, True])
def test_after_an_unexpected_end_no_run_moves_by_itself(
    leaving: bool, host: Host, outlet: Reported, tmp_path: Path
) -> None:
    turn(host, lambda: host.phase is Phase.LISTENING)
    assert host.pid is not None
    os.kill(host.pid, signal.SIGSTOP)  # it hears nothing of what follows
    host.obey([begin(tmp_path), SetSpeed(speed=None), Run(run_id="a", updates=3, order=2)])
    host.obey([Commit(run_id="a", token=4), Ask(run_id="a", question=FirstAnswers(run="a"))])
    host.obey([Shutdown(order=3)] if leaving else [])
    os.kill(host.pid, signal.SIGKILL)
    turn(host, lambda: host.phase in (Phase.ABSENT, Phase.ENDED))
    assert host.ended is leaving
    assert outlet.tokens == [4], "who waits for the commit is let go"
    assert [question for question, _ in outlet.answers] == [FirstAnswers(run="a")]
    failures = [report.failure for report in outlet.reports if report.failure]
    assert ["ended unexpectedly" in sentence for sentence in failures] == ([] if leaving else [True])
    last = outlet.reports[-1]
    assert (last.run_id, last.order, last.state) == (("", 3, State.IDLE) if leaving else ("a", 2, State.FAILED))


def test_a_run_that_was_being_closed_is_closed_in_the_place_of_its_process(
    host: Host, outlet: Reported, tmp_path: Path
) -> None:
    host.obey([begin(tmp_path)])
    turn(host, lambda: bool(outlet.reports))
    assert host.pid is not None
    os.kill(host.pid, signal.SIGSTOP)
    host.obey([Close(run_id="a", order=2)])
    kill(host)
    assert [report.closed for report in outlet.reports if report.closed] == ["a"]
    assert (outlet.reports[-1].order, outlet.reports[-1].state) == (2, State.IDLE)
    assert ["ended unexpectedly" in sentence for sentence in outlet.sentences] == [True]


def test_a_run_that_has_begun_again_since_it_was_closed_is_not_forgotten(
    host: Host, outlet: Reported, tmp_path: Path
) -> None:
    for order in (4, 6):
        host.obey([begin(tmp_path, order=order)])
    turn(host, lambda: bool(outlet.reports) and outlet.reports[-1].order == 6)
    assert [report.closed for report in outlet.reports if report.closed] == ["a"], "for the second beginning"
    kill(host)
    assert (outlet.reports[-1].run_id, outlet.reports[-1].state) == ("a", State.FAILED)


def test_who_waits_for_a_commit_is_let_go(left: Host, outlet: Reported) -> None:
    left.obey([Commit(run_id="a", token=7), Settle(token=8)])
    assert outlet.tokens == [7, 8]


def test_a_question_to_a_run_that_is_not_there_is_given_up(left: Host, outlet: Reported) -> None:
    question = FirstAnswers(run="another")
    left.obey([Ask(run_id="another", question=question)])
    assert outlet.answers == [(question, "The question was cancelled.")]
    assert left.phase is Phase.ABSENT


def test_a_command_of_which_nobody_said_whether_it_outlives_a_process_is_an_error(outlet: Reported) -> None:
    with pytest.raises(TypeError, match="outlives a process"):
        Host(outlet).obey([Unknown()])
