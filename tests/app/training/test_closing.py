"""Closing in every state: the worker ends by itself, the file is complete, and Qt reports nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.training import controller, host
from app.training.controller import State
from grpo_core.config import Settings
from grpo_core.learners import Learner
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader
from tests.app.training.conftest import MakeTrainer, Trainer
from tests.app.training.scripted import scripted

SCRIPT = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer
from app.training.controller import Controller, State
from grpo_core.config import Settings
from grpo_core.host.process import serve

where, path, process = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "process"
application = QCoreApplication([])
controller = Controller(process=serve if process else None)
controller.set_speed(None if where != "waiting" else 0.01)

def until(condition):
    while not condition():
        application.processEvents()

def taken():
    controller.look()
    return controller.take() is not None

if where != "untouched":
    controller.begin(Settings(), path)
if where not in ("untouched", "preparing"):
    until(lambda: controller.state is State.PAUSED)
if where in ("running", "waiting", "stopping"):
    controller.run(None)
    until(taken)
if where == "stopping":
    controller.pause()
if where == "paused":
    controller.run(3)
    until(lambda: controller.state is State.PAUSED)
if where == "failed":
    controller.set_settings(Settings().replace({"optimizer.learning_rate": 1e3, "objective.beta": 10.0}))
    controller.run(None)
    until(lambda: controller.state is State.FAILED)
if where == "closed":
    controller.close_run()
    until(lambda: controller.state is State.IDLE)
controller.finished.connect(application.quit)
if not controller.shutdown():
    application.exec()
print("closed at", controller.head)
"""


WHERE = ("untouched", "preparing", "ready", "running", "waiting", "stopping", "paused", "failed", "closed")


@pytest.mark.quick_cases("untouched-process", "running-process", "running-thread", "failed-thread")
@pytest.mark.parametrize("host", ["process", "thread"])
@pytest.mark.parametrize("where", WHERE)
def test_closing_in_every_state_is_silent(where: str, host: str, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, where, str(path), host],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (done.returncode, done.stderr) == (0, "")
    head = int(done.stdout.split()[-1])
    if head:
        with RunReader.open(path) as reader:
            assert (reader.last, reader.meta.ended) == (head, True)
    else:
        assert list(tmp_path.iterdir()) == []


class Endless:
    """Makes updates of which the second ends only when cancelled."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.deaf = threading.Event()

    def __call__(self, real: Learner, poll: Callable[[], None]) -> Step:
        assert not self.inside.is_set(), "a cancelled update was begun again"
        if (step := next(real)).step == 1:
            return step
        self.inside.set()
        self.deaf.wait()
        while True:
            poll()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Endless:
    made = Endless()
    monkeypatch.setattr(host, "learner", scripted(made))
    return made


def test_an_update_in_progress_is_given_up_and_what_was_finished_stays(
    make_trainer: MakeTrainer, tmp_path: Path, endless: Endless
) -> None:
    endless.deaf.set()
    trainer = make_trainer()
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.run(None)
    trainer.qtbot.waitUntil(endless.inside.is_set)
    trainer.leave()
    assert trainer.failures == []
    with RunReader.open(tmp_path / "a.grpo") as reader:
        assert (reader.last, reader.meta.ended) == (1, True)


def test_a_worker_that_does_not_listen_is_waited_for_and_never_killed(
    make_trainer: MakeTrainer, tmp_path: Path, endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "PATIENCE_MS", 20)
    trainer = make_trainer()
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.run(None)
    trainer.qtbot.waitUntil(endless.inside.is_set)
    with trainer.qtbot.waitSignal(trainer.still_busy):
        assert not trainer.shutdown()
    assert not trainer.shutdown(0.01)
    assert trainer.state is State.ENDING
    with trainer.qtbot.waitSignal(trainer.finished):
        endless.deaf.set()
    trainer.until(State.ENDED)
    assert trainer.shutdown()


def test_after_a_shutdown_a_run_can_be_begun_again(trainer: Trainer, tmp_path: Path) -> None:
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.until(State.PAUSED)
    with trainer.qtbot.waitSignal(trainer.finished):
        trainer.shutdown(60)
    trainer.begin(Settings(), tmp_path / "b.grpo")
    trainer.train(2)
    assert trainer.head == 2
