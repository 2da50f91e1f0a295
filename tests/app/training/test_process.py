"""A run in its own process: which modules it imports, and what happens to the run when either process dies."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import psutil
import pytest
from PySide6.QtCore import QElapsedTimer

from app.training import deadlines
from app.training.controller import State
from grpo_core.child.process import ChildProcess
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.host import run_output
from grpo_core.host.process import serve
from grpo_core.learners import learner
from tests.app.training import mains
from tests.app.training.conftest import MakeTrainer, numbers_in, steps_in


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a process notes what a test asks about."""
    path = tmp_path / "noted"
    path.touch()
    monkeypatch.setenv(mains.NOTED, str(path))
    return path


def test_the_process_of_a_bandit_imports_neither_torch_nor_qt(
    make_trainer: MakeTrainer, tmp_path: Path, noted: Path
) -> None:
    trainer = make_trainer(process=mains.serve_and_note_modules)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.train(5)
    assert trainer.shutdown(20)
    modules = set(noted.read_text().split())
    assert "numpy" in modules
    assert not modules & {"torch", "safetensors", "PySide6", "pyqtgraph"}


def test_the_process_is_started_ahead_of_the_first_run_when_that_is_asked_for(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(process=serve)
    assert trainer.worker.host.pid is None, "nothing is started by itself"
    trainer.warm_up()
    trainer.qtbot.waitUntil(lambda: trainer.worker.host.pid is not None)
    assert trainer.state is State.IDLE


def test_a_killed_process_is_told_at_once_and_the_run_goes_on_in_another_whose_updates_the_window_sees(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    path, trainer = tmp_path / "a.grpo", make_trainer(process=serve)
    trainer.begin(Settings(), path)
    trainer.run(None)
    trainer.until_head(5)
    trainer.kill()
    trainer.until(State.FAILED)
    [failure] = trainer.failures
    assert "ended unexpectedly (killed by signal 9)" in failure
    head = trainer.head
    assert numbers_in(path) == list(range(1, head + 1)), "also what it had written and not yet reported"
    trainer.run(None)
    trainer.until_head(head + 5)  # nothing is reported meanwhile that would bring them along
    trainer.pause()
    trainer.until(State.PAUSED)
    for step, same in zip(steps_in(path), islice(learner(Settings()), trainer.head), strict=True):
        np.testing.assert_array_equal(step.logp, same.logp)
    numbers: list[int] = []
    while (fresh := trainer.take()) is not None:
        numbers += range(fresh.first, fresh.head + 1)
    assert numbers == list(range(1, trainer.head + 1))


def test_updates_that_could_not_be_written_outlive_the_process_that_made_them(
    make_trainer: MakeTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, path = tmp_path / "full", tmp_path / "a.grpo"
    monkeypatch.setenv(mains.REFUSING, str(full))
    monkeypatch.setattr(run_output, "run_writer", mains.refusing_writer)
    trainer = make_trainer(process=mains.serve_on_a_disk_that_fills)
    trainer.begin(Settings(), path)
    full.touch()
    trainer.run(5)
    trainer.until(State.FAILED)
    assert not path.exists()
    trainer.kill()
    trainer.qtbot.waitUntil(lambda: len(trainer.failures) == 2)
    assert trainer.buffer is not None and trainer.buffer.uncommitted(1) is not None
    full.unlink()
    trainer.train(2)
    assert numbers_in(path) == [1, 2, 3]
    assert trainer.take() is not None


def test_a_process_that_leaves_an_urgent_command_unheard_is_ended_and_the_next_run_has_another(
    make_trainer: MakeTrainer, tmp_path: Path, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, trainer = tmp_path / "a.grpo", make_trainer(process=mains.serve_deaf)
    trainer.begin(Settings(), path)
    trainer.run(None)
    trainer.until_head(1)
    trainer.qtbot.waitUntil(lambda: noted.read_text() == "deaf")
    with monkeypatch.context() as patch:
        patch.setattr(deadlines, "PATIENCE", 0.4)
        trainer.leave()
        trainer.qtbot.waitUntil(lambda: bool(trainer.sentences))
    assert ["did not answer" in sentence for sentence in trainer.sentences] == [True]
    assert trainer.failures == []
    assert numbers_in(path) == [1]
    noted.unlink()
    trainer.begin(Settings(), tmp_path / "b.grpo")
    trainer.train(4)
    assert numbers_in(tmp_path / "b.grpo") == [1, 2, 3, 4]


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="signals stop processes elsewhere alone")
def test_a_process_that_is_stopped_is_ended_when_it_does_not_hear_of_a_pause(
    make_trainer: MakeTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, trainer = tmp_path / "a.grpo", make_trainer(process=serve)
    trainer.begin(Settings(), path)
    trainer.run(None)
    trainer.until_head(1)
    pid = trainer.worker.host.pid
    assert pid is not None
    monkeypatch.setattr(deadlines, "PATIENCE", 0.2)
    monkeypatch.setattr(deadlines, "QUIET", 4.0)
    os.kill(pid, signal.SIGSTOP)
    trainer.pause()
    trainer.until(State.FAILED)
    assert ["has not answered" in sentence for sentence in trainer.sentences] == [True]
    [failure] = trainer.failures
    assert "did not answer" in failure
    head = trainer.head
    assert numbers_in(path) == list(range(1, head + 1))
    monkeypatch.undo()
    trainer.train(3)
    assert trainer.head == head + 3


@pytest.mark.long
def test_a_pause_during_a_long_update_waits_for_it(
    make_trainer: MakeTrainer, tmp_path: Path, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "QUIET", 5.0)
    trainer = make_trainer(process=mains.serve_slowly)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.run(None)
    trainer.qtbot.waitUntil(lambda: noted.read_text() == "slow", timeout=60_000)
    trainer.pause()
    patience = QElapsedTimer()
    patience.start()
    trainer.qtbot.waitUntil(lambda: patience.elapsed() > 6000)
    noted.unlink()
    trainer.until(State.PAUSED)
    assert trainer.failures == []
    assert trainer.head >= 2


def test_a_run_whose_process_ends_before_it_has_begun_stands_still_with_the_reason_and_begins_in_another(
    make_trainer: MakeTrainer, tmp_path: Path, noted: Path
) -> None:
    trainer = make_trainer(process=mains.serve_without_memory_for_a_run)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.run(None)
    trainer.until(State.FAILED)
    assert ["(it ran out of memory)" in failure for failure in trainer.failures] == [True]
    noted.unlink()
    trainer.run(None)
    trainer.until_head(5)
    assert trainer.state is State.RUNNING


def test_a_run_that_is_left_and_begun_again_at_once_shows_its_updates(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    trainer = make_trainer(process=serve)
    for run_id in ("a", "b", "a"):
        trainer.begin(Settings(), tmp_path / f"{run_id}.grpo", run_id=run_id)
    trainer.run(None)
    trainer.until_head(5)


def test_without_a_file_handle_for_its_pipe_there_is_no_process_and_that_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def used_up() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(multiprocessing, "Pipe", used_up)
    with pytest.raises(GrpoError, match="could not be started"):
        ChildProcess(serve)


def test_two_threads_that_end_a_process_at_the_same_time_both_hear_how_it_ended() -> None:
    child = ChildProcess(serve)
    assert child.connection.poll(60), "it is ready"
    with ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(child.close) for _ in range(2)]
        child.kill()
    assert {end.result() for end in ends} == {f"killed by signal {signal.SIGKILL}"}
    assert child.close() == ends[0].result(), "and so does who asks later"


def test_where_no_process_can_be_had_the_bandit_runs_in_the_window_and_that_is_said(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    trainer = make_trainer(process=mains.never_ready)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.train(4)
    assert numbers_in(tmp_path / "a.grpo") == [1, 2, 3, 4]
    assert ["in the window's own process" in sentence for sentence in trainer.sentences] == [True]


PARENT = """
import sys, time
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.training.controller import Controller
from grpo_core.config import Settings
from tests.app.training import mains

application = QCoreApplication([])
controller = Controller(process=getattr(mains, sys.argv[2]))
controller.begin(Settings(), Path(sys.argv[1]))
controller.run(None)
while controller.head < 1:
    application.processEvents()
    controller.look()
print(controller.worker.host.pid, flush=True)
while True:
    application.processEvents()
    controller.look()
    controller.take()
"""


@pytest.mark.parametrize("main", ["serve", "serve_deaf"])
def test_a_process_does_not_outlive_a_window_that_is_killed(main: str, tmp_path: Path, noted: Path) -> None:
    window = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "a.grpo"), main], stdout=subprocess.PIPE, text=True
    )
    assert window.stdout is not None
    run = psutil.Process(int(window.stdout.readline()))
    children = psutil.Process(window.pid).children(recursive=True)
    assert run in children
    window.kill()
    window.wait()
    window.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=200)
    assert not alive
    assert numbers_in(tmp_path / "a.grpo") or main == "serve_deaf", (
        "an update may wait for the next one to be committed"
    )
