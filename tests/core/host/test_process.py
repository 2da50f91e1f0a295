"""A run's process: what it sends when the window requests updates, and how it ends if memory is short."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from grpo_core import progress
from grpo_core.child.wire import Message, receive, send
from grpo_core.config import Settings, language_settings
from grpo_core.errors import Cancelled
from grpo_core.host import process as process_module
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Ask, Begin, Command, Run, SetSpeed
from grpo_core.host.live_run import LiveRun
from grpo_core.host.loop import Loop
from grpo_core.host.messages import from_command
from grpo_core.host.process import Incoming, Outgoing, ProcessLearners
from grpo_core.learners import Earlier, Learner, learner, nothing_earlier
from grpo_core.progress import unpolled
from grpo_core.questions import FirstAnswers
from grpo_core.record import Step

DEFAULTS = Settings()
ONE_BY_ONE = 1e9
"""A speed that never waits. Without one, a pass of the loop can make several updates."""


def learners(settings: Settings, *, resume: Step | None, earlier: Earlier, poll: Callable[[], None]) -> Learner:
    return learner(settings, resume=resume, poll=poll)


class Process:
    """A run's process whose loop the test advances, and the window's end of its connection."""

    def __init__(self, window: Connection, own: Connection, folder: Path) -> None:
        self.window, self.folder = window, folder
        outgoing = Outgoing(own)
        self.incoming = Incoming(own, outgoing)
        self.loop = Loop(outgoing, learners, self.incoming.poll)

    def send(self, command: Command) -> None:
        send(self.window, *from_command(command))

    def begin(self, run_id: str, settings: Settings = DEFAULTS) -> None:
        """Begin a run and run it without limit, one update per turn."""
        buffer = Buffer(run_id, settings)
        self.send(Begin(run_id=run_id, path=self.folder / f"{run_id}.grpo", settings=settings, buffer=buffer))
        self.send(SetSpeed(speed=ONE_BY_ONE))
        self.send(Run(run_id=run_id, updates=None))

    def look(self, run_id: str) -> None:
        send(self.window, {"do": "look", "run_id": run_id, "group": 0})

    def turn(self, updates: int) -> list[Message]:
        """Advance the loop by the given number of turns. Returns the messages it sent."""
        for _ in range(updates):
            self.loop.obey(self.incoming.take(0.0))
            self.loop.advance()
        messages = []
        while self.window.poll():
            messages.append(receive(self.window))
        return messages


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    window, own = Pipe()
    made = Process(window, own, tmp_path)
    yield made
    made.loop.leave()
    window.close()
    own.close()


def fresh(messages: list[Message]) -> list[tuple[str, int]]:
    """Return (run, head) of every bundle of updates."""
    return [(message["run_id"], message["head"]) for message in messages if message["is"] == "fresh"]


def test_nothing_is_sent_of_a_run_before_it_is_looked_at(process: Process) -> None:
    process.begin("a")
    assert fresh(process.turn(3)) == []
    process.look("a")
    assert fresh(process.turn(1)) == [("a", 3)]
    assert fresh(process.turn(1)) == []


@pytest.mark.parametrize("looked_first", [False, True], ids=["not looked at before", "looked at before"])
def test_what_a_run_that_is_closed_had_finished_does_not_answer_a_look_at_the_next_one(
    process: Process, looked_first: bool
) -> None:
    process.begin("a")
    process.turn(3)
    if looked_first:
        process.look("a")
        process.turn(1)
    process.begin("b")
    process.look("b")
    assert fresh(process.turn(2))[-1] == ("b", 1)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA error: out of memory")], ids=["Python", "torch"])
def test_memory_that_is_short_in_an_update_is_said_in_a_sentence_and_the_run_goes_on(
    error: Exception, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.begin("a")
    process.turn(2)

    def short(self: object, most: int) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(LiveRun, "update", short)
        reports = [message for message in process.turn(1) if message["is"] == "report"]
    (sentence,) = [report["failure"] for report in reports if report["failure"]]
    assert sentence.startswith("The run was stopped after update 2: memory is short.")
    process.send(Run(run_id="a", updates=None))
    process.look("a")
    assert fresh(process.turn(1)) == [("a", 3)]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (MemoryError(), ": memory is short. Close other programs"),
        (RuntimeError("CUDA error: out of memory"), ": memory is short. Close other programs"),
        (KeyError("tokens"), " because of an unexpected error (KeyError: 'tokens')."),
    ],
    ids=["Python", "torch", "unexpected"],
)
def test_a_question_that_fails_is_not_said_to_have_stopped_the_run(
    error: Exception, why: str, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.begin("a")
    process.turn(2)

    def fails(self: object, question: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(LiveRun, "answer", fails)
        process.send(Ask(run_id="a", question=FirstAnswers(run="a")))
        messages = process.turn(1)
    (answer,) = [message["answer"] for message in messages if message["is"] == "answer"]
    assert answer.startswith(f"The question could not be answered{why}") and "stopped" not in answer
    assert not [message for message in messages if message["is"] == "report"]
    process.look("a")
    assert fresh(process.turn(1)) == [("a", 3)]


def _no_memory(connection: Connection) -> bytes:
    raise MemoryError


def test_memory_that_is_short_outside_an_update_ends_the_process_with_a_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_module, "receive", _no_memory)
    log = logging.getLogger()
    monkeypatch.setattr(log, "handlers", list(log.handlers))  # a process keeps its own for as long as it lives
    window, own = Pipe()
    send(window, {"do": "look", "run_id": "a", "group": 0})
    with pytest.raises(MemoryError):  # which has the code where a process is started (tests/core/child)
        process_module.serve(own)
    assert receive(window) == {"is": "ready"}


SMALL = language_settings().replace(
    {"task.prompts": 2, "learner.group_size": 4, "task.max_tokens": 6, "task.held_out": 8}
)


def said_of_an_update(settings: Settings, group: int = 0) -> list[Message]:
    """Return the messages that a run's process sends during its first update to a window that shows ``group``."""
    window, own = Pipe()
    outgoing = Outgoing(own)
    outgoing.fresh(Buffer("a", settings))
    outgoing.look("a", group)
    next(ProcessLearners(outgoing)(settings, resume=None, earlier=nothing_earlier, poll=unpolled))
    messages = []
    while window.poll():
        messages.append(receive(window))
    return messages


def test_a_bandit_never_says_how_far_its_update_is_and_a_language_model_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET", 0.0)
    assert said_of_an_update(DEFAULTS) == []
    found = said_of_an_update(SMALL)
    assert [message["is"] for message in found[:3]] == ["loading", "loaded", "progress"]
    assert {message["run_id"] for message in found[2:]} == {"a"}
    assert found[2]["phase"] == "sampling" and found[-1]["phase"] == "scoring"


@pytest.mark.parametrize("group", [0, 1])
def test_the_completions_of_the_group_that_is_shown_are_told_while_they_are_sampled(
    group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    found = [message for message in said_of_an_update(SMALL, group) if message["is"] == "progress"]
    written = [message["written"] for message in found if message["phase"] == "sampling"]
    assert {one["group"] for one in written} == {group}
    lengths = [[len(tokens) for tokens in one["completions"]] for one in written]
    assert lengths[:2] == [[0] * 4, [1] * 4], "the first token of each"
    assert lengths == sorted(lengths) and len(lengths) > 2
    assert sum(message["written"] is not None for message in found if message["phase"] == "training") <= 1


def test_what_follows_a_run_that_is_given_up_at_once_is_read_after_it(process: Process) -> None:
    """The run that begins first is cancelled before its model is loaded."""
    for run_id in ("a", "b"):
        process.begin(run_id)
    taken = process.incoming.take(0.0)
    assert [type(command) for command in taken] == [Begin]
    with pytest.raises(Cancelled):
        process.incoming.poll()
    taken = process.incoming.take(0.0)
    assert [type(command) for command in taken] == [SetSpeed, Run, Begin, SetSpeed, Run]
    process.incoming.poll()
