"""Experiments in a thread: ordered results, only the latest job counts, and cancellation is immediate."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from threading import Event

import pytest
from pytestqt.qtbot import QtBot

from app.jobs.runner import Poll, Runner
from grpo_core.errors import GrpoError


@pytest.fixture
def runner(qtbot: QtBot) -> Iterator[Runner]:
    one = Runner()
    yield one
    one.close()


def test_results_come_in_order_and_the_end_after_them(qtbot: QtBot, runner: Runner) -> None:
    told: list[object] = []
    runner.arrived.connect(told.append)
    runner.ended.connect(told.append)
    with qtbot.waitSignal(runner.ended):
        runner.start(lambda poll: iter([1, 2, 3]))
    assert told == [1, 2, 3, ""]
    assert not runner.busy


def test_what_was_done_before_a_cancel_stays_and_nothing_follows(qtbot: QtBot, runner: Runner) -> None:
    told: list[object] = []
    left = Event()

    def endless(poll: Poll) -> Iterator[object]:
        try:
            yield "first"
            while True:
                poll()
        finally:
            left.set()

    runner.arrived.connect(told.append)
    with qtbot.waitSignal(runner.arrived):
        runner.start(endless)
    with qtbot.waitSignal(runner.ended) as ended:
        runner.cancel()
    assert left.wait(60)
    assert told == ["first"] and "Cancelled" in ended.args[0] and not runner.busy


def test_the_latest_experiment_is_the_one_that_counts(qtbot: QtBot, runner: Runner) -> None:
    told: list[object] = []
    released = Event()

    def slow(poll: Poll) -> Iterator[object]:
        released.wait(60)
        yield "old"

    runner.arrived.connect(told.append)
    runner.start(slow)
    with qtbot.waitSignal(runner.ended):
        runner.start(lambda poll: iter(["new"]))
        released.set()
    assert told == ["new"]


def test_what_cannot_be_is_said(qtbot: QtBot, runner: Runner) -> None:
    def impossible(poll: Poll) -> Iterator[object]:
        raise GrpoError("There is no such preset.")
        yield

    with qtbot.waitSignal(runner.ended) as ended:
        runner.start(impossible)
    assert ended.args == ["There is no such preset."]


def test_an_experiment_that_does_not_hear_that_it_was_given_up_is_left_behind(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.runner.DEAF_SECONDS", 0.05)
    begun, answered = Event(), Event()

    def deaf(poll: Poll) -> Iterator[object]:
        begun.set()
        answered.wait()  # as a disk that does not answer
        yield 1

    runner.start(deaf)
    assert begun.wait(30)
    runner.close()
    assert not answered.is_set() and not runner.busy
    answered.set()


def test_one_that_is_asked_to_stop_is_waited_for_and_what_it_still_does_arrives(qtbot: QtBot, runner: Runner) -> None:
    told: list[object] = []
    asked = Event()

    def unhurried(poll: Poll) -> Iterator[object]:
        asked.wait(60)
        yield "done"

    runner.arrived.connect(told.append)
    runner.start(unhurried)
    assert runner.poll is not None
    with qtbot.waitSignal(runner.ended) as ended:
        runner.poll.stopped = True
        asked.set()
    assert told == ["done"] and "Cancelled" in ended.args[0] and not runner.busy


DELETED_WITH_THEIR_OWNERS = """
import sys
import time
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from app.jobs.runner import Runner

sys.setswitchinterval(1e-5)
application = QCoreApplication([])
end = time.monotonic() + 2.0
while time.monotonic() < end:
    for _ in range(8):
        owner = QObject()
        runner = Runner(owner)
        runner.start(lambda poll: iter(range(20)))
        owner.deleteLater()
        del owner, runner
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    QCoreApplication.processEvents()
"""


def test_a_runner_may_be_deleted_and_the_process_may_end_while_it_computes() -> None:
    """The process is a child, because it crashed within a second when the thread used objects that were deleted."""
    done = subprocess.run([sys.executable, "-c", DELETED_WITH_THEIR_OWNERS], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
