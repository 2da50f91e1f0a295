"""The language model behind the worker: the same run as in one process, whatever happens to the process that trains
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.training.controller import State
from grpo_core.child.wire import error_from, error_message
from grpo_core.config import PRESETS, Settings, language_settings
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, RunFileError, SettingsError
from grpo_core.learners import learner
from grpo_core.questions import Answer, Question, Replay, Replayed
from grpo_core.runs.run_file import RunReader
from tests.app.training.conftest import MakeTrainer, Trainer
from tests.conftest import OUTLIVES_A_TEST, patient

SMALL = language_settings().replace(
    {"task.prompts": 2, "learner.group_size": 4, "task.held_out": 8, "model.snapshot_every": 3}
)


@pytest.fixture(scope="module")
def trainer_of_module(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[Trainer]:
    """A controller whose process imports torch once for all tests except those of its start or end."""
    trainer = Trainer(patient(QtBot(request)))
    trainer.setProperty(OUTLIVES_A_TEST, True)
    yield trainer
    assert trainer.shutdown(60)


@pytest.fixture
def shared(trainer_of_module: Trainer, qtbot: QtBot) -> Trainer:
    """The module's controller, at rest or without a run so far."""
    trainer_of_module.qtbot = qtbot
    trainer_of_module.failures.clear()
    return trainer_of_module


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for run files that the module's controller still has open after the test."""
    return tmp_path_factory.mktemp("runs")


def started(trainer: Trainer, path: Path, settings: Settings = SMALL) -> Trainer:
    """Return ``trainer`` with a loaded language model. It gets a process although none was requested."""
    trainer.begin(settings, path)
    assert trainer.state is State.PREPARING, "loading takes seconds, and the window says so"
    trainer.until(State.PAUSED, State.FAILED)
    return trainer


def test_it_is_the_run_that_one_process_alone_would_make(shared: Trainer, folder: Path) -> None:
    trainer = started(shared, folder / "run.grpo")
    assert trainer.worker.host.devices[0].startswith("cpu")
    trainer.train(4)
    assert trainer.commit(5)
    alone = learner(SMALL)
    with closing(RunReader.open(folder / "run.grpo")) as reader:
        for number in range(1, 5):
            expected, recorded = next(alone), reader.step(number)
            for name in ("tokens", "logp", "dist_logp", "rewards", "watched_tokens"):
                assert np.array_equal(getattr(expected, name), getattr(recorded, name)), name
            assert bool(recorded.resume) == (number == 3)


@pytest.mark.long
def test_a_killed_process_leaves_a_whole_run_that_goes_on(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    trainer = started(make_trainer(), path)
    trainer.run(None)
    trainer.until_head(4)
    trainer.kill()
    trainer.until(State.FAILED)
    (failure,) = trainer.failures
    assert "process has ended unexpectedly (killed by signal 9)" in failure
    head = trainer.head
    assert trainer.buffer is not None and trainer.buffer.committed == head
    with closing(RunReader.open(path)) as reader:
        assert reader.last == head
        assert np.isfinite(reader.step(head).logp).all()
    trainer.train(2)
    assert trainer.head == head + 2
    alone = learner(SMALL)
    for _ in range(head + 1):
        expected = next(alone)
    assert trainer.commit(5)
    with closing(RunReader.open(path)) as reader:
        assert np.array_equal(reader.step(head + 1).logp, expected.logp), "replayed to where it stood, bit for bit"


def test_closing_gives_up_the_update_in_progress_within_a_token(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    large = SMALL.replace({"task.prompts": 64, "learner.group_size": 64})
    trainer = started(make_trainer(), tmp_path / "run.grpo", large)
    child, head = psutil.Process(trainer.worker.host.pid), trainer.head
    trainer.run(None)
    trainer.qtbot.waitUntil(lambda: child.cpu_percent() > 1)
    assert trainer.shutdown(60)
    assert not child.is_running()
    assert trainer.head == head, "the update of 4,096 completions was given up"


def test_a_question_is_answered_between_two_updates_and_kept(shared: Trainer, folder: Path) -> None:
    path = folder / "run.grpo"
    trainer = started(shared, path)
    trainer.train(2)
    question = Question(step=2, group=0, completion="2+12=14")
    with trainer.qtbot.waitSignal(trainer.answered, timeout=20_000) as heard:
        trainer.ask(question)
    asked, answer = heard.args
    assert asked == question and isinstance(answer, Answer)
    assert len(answer.logp) == 8
    with trainer.qtbot.waitSignal(trainer.answered, timeout=20_000) as heard:
        trainer.ask(Question(step=2, group=0, completion="what"))
    assert "does not know “w”" in heard.args[1]
    with closing(RunReader.open(path)) as reader:
        kept = reader.answer(question)
    assert isinstance(kept, Answer) and kept.reward == answer.reward


def test_another_update_is_asked_for_while_it_trains_and_the_run_does_not_notice(shared: Trainer, folder: Path) -> None:
    path = folder / "run.grpo"
    trainer = started(shared, path)
    trainer.train(2)
    question = Replay(step=2, settings=PRESETS["Dr. GRPO"].applied_to(SMALL).replace({"learner.mu": 3}))
    with trainer.qtbot.waitSignal(trainer.answered, timeout=20_000) as heard:
        trainer.ask(question)
    asked, answer = heard.args
    assert asked == question and isinstance(answer, Replayed)
    assert answer.arrays["logp"].shape[0] == 4
    trainer.train(2)
    assert trainer.commit(5)
    alone = learner(SMALL)
    with closing(RunReader.open(path)) as reader:
        for number in range(1, 5):
            expected = next(alone)
            assert np.array_equal(expected.logp, reader.step(number).logp), number
        kept = reader.answer(question)
    assert isinstance(kept, Replayed) and np.array_equal(kept.arrays["logp"], answer.arrays["logp"])


def test_what_is_not_there_is_told_and_the_window_goes_on(shared: Trainer, folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    trainer = started(shared, folder / "a.grpo", SMALL.replace({"model.device": "cuda"}))
    assert trainer.state is State.FAILED
    assert "available: cpu" in trainer.failures[0]
    trainer.begin(Settings(), folder / "b.grpo")
    trainer.train(3)
    assert trainer.head == 3


def test_errors_cross_the_connection_as_what_they_are() -> None:
    for error in (
        SettingsError("a.b", 3, "give 4"),
        NonFiniteError(5, "the loss"),
        Cancelled("Stopped."),
        GrpoError("No."),
        RunFileError("Full."),
    ):
        again = error_from(error_message(error))
        assert type(again) is type(error)
        assert str(again).replace("“", "").replace("”", "") == str(error)
    assert "ValueError: odd" in str(error_from(error_message(ValueError("odd"))))
