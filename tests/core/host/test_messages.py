"""Commands, bundles and reports arrive unchanged at the other end of a connection."""

from __future__ import annotations

import dataclasses
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from grpo_core.breakpoints import Breakpoint
from grpo_core.child.wire import Message, receive, send
from grpo_core.config import Settings, language_settings
from grpo_core.host import commands
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Command
from grpo_core.host.messages import (
    COMMANDS,
    from_bundle,
    from_command,
    from_progress,
    from_report,
    to_bundle,
    to_command,
    to_progress,
    to_report,
)
from grpo_core.host.reports import Report, State
from grpo_core.metrics import metrics
from grpo_core.progress import Phase, Progress, Written
from grpo_core.questions import Question, Replay
from grpo_core.runs.layout import encoded
from tests.core.steps import random_step

SETTINGS = Settings().replace({"objective.beta": 0.25})


def sent(message: Message, blobs: list[bytes]) -> Message:
    """Return the message that arrives at the other end."""
    here, there = Pipe()
    send(here, message, blobs)
    return receive(there)


def told(near: Buffer, far: Buffer) -> None:
    """Send what is new in a buffer to another one."""
    bundle = near.bundle()
    assert bundle is not None
    far.extend(to_bundle(sent(*from_bundle(bundle))))


PLAIN: list[Command] = [
    commands.Ask(run_id="a", question=Question(step=2, group=0, completion="2+12=14")),
    commands.Ask(run_id="a", question=Replay(step=3, settings=language_settings())),
    commands.Close(order=4, run_id="a"),
    commands.Commit(run_id="a", token=5),
    commands.OneStep(order=6, run_id="a"),
    commands.Pause(order=7, run_id="a"),
    commands.Run(order=8, run_id="a", updates=200),
    commands.Run(order=9, run_id="a", updates=None),
    commands.SetBreakpoints(
        breakpoints=(
            Breakpoint(series="entropy", relation="below", value=1.0),
            Breakpoint(series="dead_groups", relation="first", on=False),
        )
    ),
    commands.SetSettings(run_id="a", settings=SETTINGS),
    commands.SetSpeed(speed=30.0),
    commands.SetSpeed(speed=None),
    commands.Settle(token=10),
    commands.Shutdown(order=11),
]


def test_every_command_that_can_cross_is_tried_here() -> None:
    assert {type(command) for command in PLAIN} | {commands.Begin} == set(COMMANDS.values())


@pytest.mark.parametrize("command", PLAIN, ids=lambda command: type(command).__name__)
def test_a_command_arrives_as_it_was(command: Command) -> None:
    assert to_command(sent(*from_command(command))) == command


@pytest.mark.parametrize(("resume", "unwritten"), [(None, ()), (4, ()), (4, (5, 6)), (None, (1, 2))])
def test_a_run_arrives_with_its_last_update_and_with_those_that_no_file_holds(
    resume: int | None, unwritten: tuple[int, ...]
) -> None:
    last = None if resume is None else random_step(resume, settings=SETTINGS)
    steps = tuple(random_step(number, settings=SETTINGS) for number in unwritten)
    begin = commands.Begin(
        order=3,
        run_id="a",
        path=Path("runs", "a.grpo"),
        settings=SETTINGS,
        buffer=Buffer("a", SETTINGS),
        resume=last,
        unwritten=steps,
        start=0,
        parent=(Path("runs", "b.grpo"), 7),
        title="Run 1",
        limit=10,
    )
    arrived = to_command(sent(*from_command(begin)))
    assert isinstance(arrived, commands.Begin)
    for field in dataclasses.fields(begin):
        if field.name not in ("resume", "unwritten", "buffer"):
            assert getattr(arrived, field.name) == getattr(begin, field.name), field.name
    assert (arrived.resume is None) == (last is None)
    for one, other in zip((arrived.resume, *arrived.unwritten), (last, *steps), strict=True):
        if one is not None and other is not None:
            assert (one.step, encoded(one), one.settings) == (other.step, encoded(other), other.settings)
    assert arrived.buffer.committed == (resume or 0)
    assert arrived.buffer.head == (unwritten[-1] if unwritten else resume or 0)
    assert [step.step for step, _ in arrived.buffer.waiting(0)] == list(unwritten)
    assert arrived.buffer.bundle() is None, "the window knows all of them"


def test_a_buffer_is_followed_by_another_one_bundle_by_bundle() -> None:
    near, far = Buffer("a", Settings()), Buffer("a", Settings())
    steps = [random_step(n, settings=SETTINGS if n > 3 else Settings()) for n in range(1, 8)]
    seen: list[float] = []
    for place, step in enumerate(steps):
        near.put(step, metrics(step))
        if place % 2:
            near.mark_committed(step.step - 1)
            told(near, far)
            assert (far.head, far.committed) == (step.step, step.step - 1)
            assert encoded(far.uncommitted(step.step) or steps[0]) == encoded(step)
            assert far.uncommitted(step.step - 1) is None, "the file holds it"
        if place == 3:
            fresh = far.take()
            assert fresh is not None
            assert (fresh.first, fresh.head, fresh.changes) == (1, 4, ((4, SETTINGS),))
            seen += fresh.scalars["loss"].tolist()
    near.mark_committed(7)
    told(near, far)
    assert near.bundle() is None
    fresh = far.take()
    assert fresh is not None
    assert (fresh.first, fresh.head, far.committed) == (5, 7, 7)
    np.testing.assert_array_equal([*seen, *fresh.scalars["loss"]], [metrics(step)["loss"] for step in steps])


@pytest.mark.parametrize(
    "report",
    [
        Report(run_id="a", order=3, state=State.PAUSED, reached="Entropy is below 1."),
        Report(run_id="", order=4, state=State.IDLE, closed="a"),
        Report(run_id="a", order=5, state=State.FAILED, failure="No."),
    ],
)
def test_a_report_arrives_as_it_was(report: Report) -> None:
    assert to_report(sent(from_report(report), [])) == report


@pytest.mark.parametrize("phase", Phase)
def test_progress_crosses_with_the_run_that_it_is_of(phase: Phase) -> None:
    written = Written(group=1, prompt=(4, 5), completions=((6, 2), (), (7,)), ended=(True, False, False))
    progress = Progress(step=3, phase=phase, done=9, total=24)
    if phase is Phase.SAMPLING:
        progress = dataclasses.replace(progress, written=written, groups=(0.5, 1.0))
    assert to_progress(sent(from_progress("a", progress), [])) == ("a", progress)
