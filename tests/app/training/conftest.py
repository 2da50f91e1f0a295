"""Fixtures shared by the tests of training: a controller with the real learner and the real run file, on either
host.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.training.controller import Controller, State
from grpo_core.child.start import Main
from grpo_core.host.other_python import Pythons
from grpo_core.host.process import serve
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader


def steps_in(path: Path) -> list[Step]:
    """Return every update of a run file."""
    with RunReader.open(path) as reader:
        return [reader.step(number) for number in range(reader.first, reader.last + 1)]


def numbers_in(path: Path) -> list[int]:
    """Return the numbers of the updates in a run file."""
    return [step.step for step in steps_in(path)]


class Trainer(Controller):
    """A controller at full speed that records reports and can wait for them.

    Attributes:
        heard: every state it has been in.
        failures: every failure.
        sentences: every message for the user.
    """

    def __init__(self, qtbot: QtBot, process: Main | None = None, pythons: Pythons | None = None) -> None:
        super().__init__(process=process, pythons=pythons)
        self.qtbot = qtbot
        self.heard: list[State] = []
        self.failures: list[str] = []
        self.sentences: list[str] = []
        self.state_changed.connect(self.heard.append)
        self.failed.connect(self.failures.append)
        self.notified.connect(self.sentences.append)
        self.set_speed(None)

    @property
    def head(self) -> int:
        """Number of the last finished update, requested as a drawing window does."""
        self.look()
        return super().head

    def until(self, *states: State) -> None:
        """Wait for one of ``states``."""
        self.qtbot.waitUntil(lambda: self.state in states, timeout=40_000)

    def until_rest(self) -> None:
        """Wait until training is at rest."""
        self.until(State.IDLE, State.PAUSED, State.FAILED)

    def until_head(self, number: int) -> None:
        """Wait until update ``number`` is finished."""
        self.qtbot.waitUntil(lambda: self.head >= number, timeout=60_000)

    def train(self, updates: int) -> None:
        """Run, and wait until the run pauses by itself."""
        self.run(updates)
        self.until(State.PAUSED)

    def leave(self) -> None:
        """Close the run, and wait until there is none."""
        self.close_run()
        self.until(State.IDLE)

    def kill(self) -> None:
        """End the run's process as the system does when memory is short, and wait until that is noticed."""
        pid = self.worker.host.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        self.qtbot.waitUntil(lambda: self.worker.host.pid != pid)


MakeTrainer = Callable[..., Trainer]


@pytest.fixture
def make_trainer(qtbot: QtBot) -> Iterator[MakeTrainer]:
    """Creates controllers, and ends their workers afterwards."""
    made: list[Trainer] = []

    def make(process: Main | None = None, pythons: Pythons | None = None) -> Trainer:
        made.append(Trainer(qtbot, process, pythons))
        return made[-1]

    yield make
    for trainer in made:
        assert trainer.shutdown(60)


@pytest.fixture(params=["thread", "process"])
def trainer(make_trainer: MakeTrainer, request: pytest.FixtureRequest) -> Trainer:
    """A controller with the real learner and the real run file, whose runs are computed in a thread or a process."""
    return make_trainer(process=serve if request.param == "process" else None)
