"""An error stops the run at its last finished update, says why, and loses nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from app.training import host
from app.training.controller import State
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.host import run_output
from grpo_core.host.buffer import CAPACITY
from grpo_core.host.commands import Begin
from grpo_core.host.run_output import run_writer
from grpo_core.learners import Learner
from grpo_core.record import Step
from grpo_core.runs.run_file import RunWriter
from tests.app.training.conftest import MakeTrainer, Trainer, numbers_in, steps_in
from tests.app.training.scripted import scripted

ONE_BY_ONE = 1e4
"""A speed limit. Without one, a few updates are finished before they are written."""
EXPLODING = Settings().replace({"optimizer.learning_rate": 1000.0, "objective.beta": 10.0})


class FullDisk:
    """Creates real writers on a disk that is full at update 4 and later."""

    def __init__(self) -> None:
        self.is_full = True

    def __call__(self, begin: Begin, settings: Settings, new: bool) -> RunWriter:
        writer = run_writer(begin, settings, new)
        extend = writer.extend

        def refusing(updates: Iterable[tuple[Step, Mapping[str, float] | None]]) -> None:
            finished = list(updates)
            fitting = [one for one in finished if not self.is_full or one[0].step < 4]
            extend(fitting)
            if len(fitting) < len(finished):
                raise RunFileError("a.grpo cannot be written: the disk is full.")

        writer.extend = refusing  # type: ignore[method-assign]
        return writer


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    made = FullDisk()
    monkeypatch.setattr(run_output, "run_writer", made)
    return made


def third_of_closed(trainer: Trainer, path: Path, updates: int) -> Step:
    """Make a run of so many updates and close it. Return its third update."""
    trainer.begin(Settings(), path)
    trainer.train(updates)
    trainer.leave()
    return steps_in(path)[2]


def test_a_number_that_is_not_finite_stops_the_run_at_the_update_before_and_milder_settings_go_on(
    trainer: Trainer, tmp_path: Path
) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path)
    trainer.train(5)
    trainer.set_settings(EXPLODING)
    trainer.run(None)
    trainer.until(State.FAILED)
    [failure] = trainer.failures
    assert "not a finite number" in failure
    head = trainer.head
    assert numbers_in(path) == list(range(1, head + 1))
    trainer.set_settings(Settings().replace({"optimizer.learning_rate": 0.0, "objective.beta": 0.0}))
    trainer.train(3)
    assert numbers_in(path) == list(range(1, head + 4))


def test_on_a_full_disk_nothing_is_lost_of_what_was_finished_at_full_speed(
    make_trainer: MakeTrainer, tmp_path: Path, disk: FullDisk
) -> None:
    path, trainer = tmp_path / "a.grpo", make_trainer()
    trainer.begin(Settings(), path)
    trainer.run(20)
    trainer.until(State.FAILED)
    assert numbers_in(path) == [1, 2, 3]
    assert trainer.buffer is not None
    assert all(trainer.buffer.uncommitted(number) is not None for number in range(4, trainer.head + 1))
    disk.is_full = False
    trainer.train(20)
    assert numbers_in(path) == list(range(1, trainer.head + 1))


def test_a_full_disk_stops_the_run_and_what_it_refused_is_written_later(
    make_trainer: MakeTrainer, tmp_path: Path, disk: FullDisk
) -> None:
    path, trainer = tmp_path / "a.grpo", make_trainer()
    trainer.begin(Settings(), path)
    trainer.set_speed(ONE_BY_ONE)
    trainer.run(20)
    trainer.until(State.FAILED)
    assert ["disk is full" in failure for failure in trainer.failures] == [True]
    assert trainer.head == 4
    assert numbers_in(path) == [1, 2, 3]
    assert trainer.buffer is not None
    assert trainer.buffer.uncommitted(4) is not None
    trainer.run(20)
    trainer.until(State.FAILED)
    assert trainer.head == 4
    disk.is_full = False
    trainer.train(6)
    assert numbers_in(path) == list(range(1, 11))


def test_closing_on_a_full_disk_says_how_much_is_lost(
    make_trainer: MakeTrainer, tmp_path: Path, disk: FullDisk
) -> None:
    trainer = make_trainer()
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.set_speed(ONE_BY_ONE)
    trainer.run(20)
    trainer.until(State.FAILED)
    trainer.leave()
    assert "last update could not be written" in trainer.failures[-1]
    assert numbers_in(tmp_path / "a.grpo") == [1, 2, 3]


def test_at_its_size_limit_a_run_stops_with_a_sentence_and_everything_on_disk(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path, limit=300_000)
    trainer.run(None)
    trainer.until(State.FAILED)
    assert "size limit" in trainer.failures[0]
    assert numbers_in(path) == list(range(1, trainer.head + 1))


def test_a_file_that_another_window_writes_is_left_alone(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    resume = third_of_closed(trainer, path, 3)
    with RunWriter.open(path):
        trainer.begin(Settings(), path, resume=resume)
        trainer.run(3)
        trainer.until(State.FAILED)
        assert "another window" in trainer.failures[0]
        assert trainer.head == 3
    trainer.train(3)
    assert numbers_in(path) == [1, 2, 3, 4, 5, 6]


def test_a_file_that_has_moved_on_is_not_written_over(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    resume = third_of_closed(trainer, path, 6)
    trainer.begin(Settings(), path, resume=resume)
    trainer.run(3)
    trainer.until(State.FAILED)
    assert "contains 6 updates, but this run continues from update 3" in trainer.failures[0]
    assert numbers_in(path) == [1, 2, 3, 4, 5, 6]


def test_a_folder_that_is_not_there_is_said_and_the_update_kept(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "absent" / "a.grpo"
    trainer.begin(Settings(), path)
    trainer.run(3)
    trainer.until(State.FAILED)
    assert "no folder" in trainer.failures[0]
    path.parent.mkdir()
    trainer.train(2)
    assert numbers_in(path) == [1, 2, 3]


def test_a_bug_in_the_learner_stops_the_run_not_the_worker(
    make_trainer: MakeTrainer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stumbles = [4]

    def update(real: Learner, poll: object) -> Step:
        step = next(real)
        if step.step in stumbles:
            stumbles.clear()
            raise ZeroDivisionError("a bug")
        return step

    monkeypatch.setattr(host, "learner", scripted(update))
    path, trainer = tmp_path / "a.grpo", make_trainer()
    trainer.begin(Settings(), path)
    with caplog.at_level(logging.ERROR):
        trainer.run(20)
        trainer.until(State.FAILED)
    [failure] = trainer.failures
    assert trainer.head == 3
    assert "stopped after update 3" in failure
    assert "a bug" in failure
    assert "Traceback" in caplog.text
    assert numbers_in(path) == [1, 2, 3]
    trainer.train(3)
    assert numbers_in(path) == [1, 2, 3, 4, 5, 6]


def test_a_run_that_cannot_be_continued_says_so_when_it_is_begun(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    resume = third_of_closed(trainer, path, 3)
    trainer.begin(Settings(seed=8), tmp_path / "b.grpo", resume=resume, parent=(path, 3))
    trainer.until(State.FAILED)
    assert "seed" in trainer.failures[0]
    assert not (tmp_path / "b.grpo").exists()


def test_a_window_that_does_not_look_makes_the_worker_rest_rather_than_grow(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    trainer = make_trainer()
    trainer.begin(Settings(), tmp_path / "a.grpo")
    buffer = trainer.buffer
    assert buffer is not None
    buffer._scalars = buffer._scalars[:10]  # as if CAPACITY were small
    assert CAPACITY > 10
    trainer.run(25)
    trainer.qtbot.waitUntil(lambda: buffer.full and buffer.committed == 10)
    trainer.qtbot.wait(60)
    assert trainer.head == 10
    numbers: list[int] = []
    while trainer.state is not State.PAUSED or len(numbers) < 25:
        if (fresh := trainer.take()) is not None:
            numbers += range(fresh.first, fresh.head + 1)
        trainer.qtbot.wait(5)
    assert numbers == list(range(1, 26))
