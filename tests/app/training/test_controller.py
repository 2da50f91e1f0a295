"""Run, pause, step, change a setting: the controller with the real worker, learner and run file."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.training.controller import State
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.host.commands import Pause
from grpo_core.host.reports import Report
from grpo_core.learners import learner
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader
from tests.app.training.conftest import Trainer, steps_in


def newest(path: Path) -> list[Step]:
    """Return the last update that a run file contains so far, empty if there is none."""
    with RunReader.open(path) as reader:
        return [reader.step(reader.last)] if reader.last >= reader.first else []


def assert_same(ours: list[Step], theirs: list[Step]) -> None:
    """Assert that the updates are bitwise identical."""
    assert [step.step for step in ours] == [step.step for step in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.settings == other.settings
        for name in ("tokens", "rewards", "logp", "dist_logp"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
        for name, value in other.resume.items():
            np.testing.assert_array_equal(mine.resume[name], value)


def test_a_run_begins_paused_at_update_0_without_a_file(trainer: Trainer, tmp_path: Path) -> None:
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.until(State.PAUSED)
    assert trainer.heard == [State.PREPARING, State.PAUSED]
    assert trainer.head == 0
    assert list(tmp_path.iterdir()) == []


def test_a_window_that_was_closed_before_its_first_picture_starts_nothing_afterwards(trainer: Trainer) -> None:
    assert trainer.shutdown()
    trainer.warm_up()
    assert not trainer.worker.isRunning(), "a thread that runs at the end of the program aborts it"


def test_run_n_also_while_it_is_prepared_makes_n_updates_and_all_are_on_disk_when_it_rests(
    trainer: Trainer, tmp_path: Path
) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path)
    for wanted, state in ((7, State.PREPARING), (12, State.RUNNING)):
        trainer.run(wanted - trainer.head)
        assert trainer.state is state
        trainer.until(State.PAUSED)
        assert trainer.head == wanted
        with RunReader.open(path) as reader:
            assert reader.last == wanted


def test_a_run_without_limit_goes_on_until_it_is_paused(trainer: Trainer, tmp_path: Path) -> None:
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.until(State.PAUSED)
    trainer.run(None)
    trainer.until_head(20)
    trainer.pause()
    assert trainer.state is State.STOPPING
    trainer.until(State.PAUSED)
    head = trainer.head
    trainer.qtbot.wait(50)
    assert trainer.head == head
    assert trainer.heard[1:] == [State.PAUSED, State.RUNNING, State.STOPPING, State.PAUSED]


def test_each_press_of_step_is_one_update_at_once_whatever_the_speed(trainer: Trainer, tmp_path: Path) -> None:
    trainer.set_speed(0.01)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.until(State.PAUSED)
    for _ in range(3):
        trainer.step()
    trainer.train(1)
    assert trainer.head == 4


def test_a_step_during_a_free_run_is_its_last_update(trainer: Trainer, tmp_path: Path) -> None:
    trainer.set_speed(0.01)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.run(None)
    trainer.until_head(1)
    trainer.step()
    trainer.until(State.PAUSED)
    assert trainer.head == 2


def test_another_speed_ends_the_wait_in_progress(trainer: Trainer, tmp_path: Path) -> None:
    trainer.set_speed(0.01)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.run(10)
    trainer.until_head(1)
    trainer.set_speed(None)
    trainer.until(State.PAUSED)
    assert trainer.head == 10


def test_a_speed_is_kept(trainer: Trainer, tmp_path: Path) -> None:
    trainer.set_speed(50)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.until(State.PAUSED)
    began = time.monotonic()
    trainer.train(16)
    assert time.monotonic() - began >= 15 / 50 - 0.02


def test_a_speed_that_is_not_above_0_is_refused(trainer: Trainer) -> None:
    with pytest.raises(SettingsError, match="above 0"):
        trainer.set_speed(0)


def test_pauses_and_speeds_leave_no_trace_in_the_numbers(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path)
    trainer.train(9)
    trainer.set_speed(200)
    trainer.run(None)
    trainer.until_head(13)
    trainer.pause()
    trainer.until(State.PAUSED)
    trainer.step()
    trainer.until(State.PAUSED)
    trainer.set_speed(None)
    trainer.train(30 - trainer.head)
    assert_same(steps_in(path), list(islice(learner(Settings()), 30)))


def test_a_knob_turned_acts_at_the_next_update_and_is_marked_there(trainer: Trainer, tmp_path: Path) -> None:
    path, other = tmp_path / "a.grpo", Settings().replace({"objective.beta": 0.5})
    trainer.begin(Settings(), path)
    trainer.train(5)
    trainer.set_settings(other)
    trainer.train(3)
    fresh = trainer.take()
    assert fresh is not None and fresh.changes == ((6, other),)
    assert [step.settings == other for step in steps_in(path)] == [False] * 5 + [True] * 3
    with RunReader.open(path) as reader:
        assert reader.settings_changes() == [(1, Settings()), (6, other)]


def test_a_knob_turned_mid_run_acts_without_a_pause(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path)
    trainer.run(None)
    trainer.until_head(3)
    trainer.set_settings(Settings().replace({"optimizer.learning_rate": 0.1}))
    # some updates may have been made with the former rate when the new one arrives
    trainer.qtbot.waitUntil(lambda: [step.settings.optimizer.learning_rate for step in newest(path)] == [0.1])
    trainer.pause()
    trainer.until(State.PAUSED)
    rates = [step.settings.optimizer.learning_rate for step in steps_in(path)]
    assert rates == sorted(rates, reverse=True)
    assert set(rates) == {0.3, 0.1}
    assert State.FAILED not in trainer.heard


@pytest.mark.parametrize("changes", [{"seed": 8}, {"task.actions": 12}, {"task.levels": (0.0, 0.5)}])
def test_a_structural_setting_is_refused_and_the_run_goes_on_as_it_was(
    changes: dict[str, Any], trainer: Trainer, tmp_path: Path
) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path)
    with pytest.raises(SettingsError, match="start a new run") as caught:
        trainer.set_settings(Settings().replace(changes))
    assert [caught.value.field] == list(changes)
    trainer.train(2)
    assert steps_in(path)[-1].settings == Settings()


def test_a_file_is_continued_where_it_ended(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path)
    trainer.train(6)
    trainer.leave()
    trainer.begin(Settings(), path, resume=steps_in(path)[-1])
    trainer.train(4)
    fresh = trainer.take()
    assert fresh is not None
    assert (fresh.first, fresh.head, fresh.changes) == (7, 10, ())
    assert_same(steps_in(path), list(islice(learner(Settings()), 10)))


def test_a_branch_with_the_same_settings_is_the_same_run_in_a_file_of_its_own(trainer: Trainer, tmp_path: Path) -> None:
    trunk, branch = tmp_path / "trunk.grpo", tmp_path / "branch.grpo"
    trainer.begin(Settings(), trunk)
    trainer.train(10)
    trainer.begin(Settings(), branch, resume=steps_in(trunk)[3], parent=(trunk, 4), title="Branch")
    trainer.train(6)
    trainer.leave()
    assert_same(steps_in(branch), steps_in(trunk)[4:])
    with RunReader.open(branch) as reader:
        assert reader.meta.title == "Branch"
        assert len(reader.series("loss")) == 10


def test_beginning_another_run_closes_the_one_that_trains(trainer: Trainer, tmp_path: Path) -> None:
    first = tmp_path / "first.grpo"
    closed: list[str] = []
    trainer.closed.connect(closed.append)
    run_id = trainer.begin(Settings(), first)
    trainer.run(None)
    trainer.until_head(5)
    trainer.begin(Settings(seed=1), tmp_path / "second.grpo", run_id="second")
    trainer.until(State.PAUSED)
    assert (trainer.run_id, trainer.head, closed) == ("second", 0, [run_id])
    with RunReader.open(first) as reader:
        assert reader.meta.ended
        assert reader.last >= 5
    assert [path.name for path in tmp_path.iterdir()] == ["first.grpo"]


def test_commands_for_a_run_that_is_gone_are_dropped(trainer: Trainer, tmp_path: Path) -> None:
    old = trainer.begin(Settings(), tmp_path / "old.grpo")
    trainer.begin(Settings(), tmp_path / "new.grpo")
    trainer.run(None)
    trainer.until_head(1)
    trainer.worker.post(Pause(run_id=old))
    trainer.until_head(trainer.head + 20)
    assert trainer.state is State.RUNNING


def test_a_report_that_a_newer_command_has_overtaken_changes_nothing(trainer: Trainer, tmp_path: Path) -> None:
    run_id = trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.until(State.PAUSED)
    trainer.run(None)
    trainer.worker.reported.emit(Report(run_id=run_id, order=1, state=State.PAUSED))
    trainer.until_head(5)
    assert trainer.heard == [State.PREPARING, State.PAUSED, State.RUNNING]


def test_a_run_that_is_not_there_takes_commands_without_complaint(trainer: Trainer, tmp_path: Path) -> None:
    for command in (trainer.run, trainer.step, trainer.pause, trainer.close_run):
        command()
    trainer.set_settings(Settings())
    assert trainer.take() is None
    assert trainer.commit()
    assert trainer.state is State.IDLE


def test_a_commit_puts_everything_on_disk_while_the_run_goes_on(trainer: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "a.grpo"
    trainer.begin(Settings(), path)
    trainer.run(None)
    trainer.until_head(5)
    head = trainer.head
    trainer.commit()
    with RunReader.open(path) as reader:
        assert reader.last >= head
    assert trainer.state is State.RUNNING


def test_every_update_can_be_read_from_the_buffer_or_the_file(trainer: Trainer, tmp_path: Path) -> None:
    trainer.begin(Settings(), tmp_path / "a.grpo")
    buffer = trainer.buffer
    assert buffer is not None
    trainer.run(None)
    trainer.qtbot.waitUntil(lambda: trainer.head > 0 and buffer.committed > 0)
    with RunReader.open(tmp_path / "a.grpo") as reader:
        for back in range(100):
            number = max(trainer.head - back, 1)
            step = buffer.uncommitted(number) or reader.step(number)
            assert step.step == number


def test_nothing_is_emitted_per_update(trainer: Trainer, tmp_path: Path) -> None:
    reports: list[object] = []
    trainer.worker.reported.connect(reports.append)
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.until(State.PAUSED)
    trainer.qtbot.waitUntil(lambda: len(reports) == 1)  # it is ready
    trainer.train(200)
    assert trainer.head == 200
    trainer.qtbot.waitUntil(lambda: len(reports) >= 3)
    assert len(reports) == 3  # it runs, it has paused
    assert trainer.heard == [State.PREPARING, State.PAUSED, State.RUNNING, State.PAUSED]


def test_a_paused_program_uses_no_processor(trainer: Trainer, tmp_path: Path) -> None:
    trainer.begin(Settings(), tmp_path / "a.grpo")
    trainer.train(5)
    threads = time.process_time()
    own = time.thread_time()
    trainer.qtbot.wait(500)
    elsewhere = (time.process_time() - threads) - (time.thread_time() - own)
    assert elsewhere < 0.01
