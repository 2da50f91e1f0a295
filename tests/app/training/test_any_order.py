"""Buttons pressed in any order: no update is lost, doubled, or different from that of the learner alone."""

from __future__ import annotations

import os
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from pytestqt.qtbot import QtBot

from app.training.controller import State
from grpo_core.child.start import Main
from grpo_core.config import Settings
from grpo_core.host import run_output
from grpo_core.host.buffer import Fresh
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader
from tests.app.training.conftest import Trainer
from tests.app.training.mains import REFUSING, refusing_writer, serve_on_a_disk_that_fills


class Anything(RuleBasedStateMachine):
    """A user of the window, compared with a list of the expected effects."""

    qtbot: QtBot
    serve_in: tuple[Main, ...] = ()

    @initialize()
    def open_window(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.full_disk = Path(self.folder.name, "full")
        os.environ[REFUSING] = str(self.full_disk)
        self.refusing = False
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(run_output, "run_writer", refusing_writer)
        self.trainer = Trainer(self.qtbot, process=next(iter(self.serve_in), None))
        self.count = 0
        self.start(seed=0)

    def _begin(self, wanted: Settings, resume: Step | None, parent: tuple[Path, int] | None) -> None:
        self.count += 1
        self.path = Path(self.folder.name) / f"{self.count}.grpo"
        self.settings, self.resume = wanted, resume
        self.taken: list[Fresh] = []
        self.trainer.begin(wanted, self.path, resume=resume, parent=parent)

    def _look(self) -> None:
        if (fresh := self.trainer.take()) is not None:
            self.taken.append(fresh)

    @rule(seed=st.integers(0, 3))
    def start(self, seed: int) -> None:
        self._begin(Settings(seed=seed), None, None)

    @rule(updates=st.sampled_from([1, 2, 9, None]))
    def run_on(self, updates: int | None) -> None:
        self.trainer.run(updates)
        self._look()

    @rule()
    def step(self) -> None:
        self.trainer.step()

    @rule()
    def pause(self) -> None:
        self.trainer.pause()
        self.trainer.until_rest()

    @rule(updates=st.integers(1, 5))
    def exactly(self, updates: int) -> None:
        self.pause()
        if self.trainer.state is State.PAUSED:
            head = self.trainer.head
            self.trainer.run(updates)
            self.trainer.until_rest()
            assert self.trainer.head == head + updates or self.trainer.failures

    @precondition(lambda self: self.trainer.run_id)
    @rule(beta=st.sampled_from([0.0, 0.04, 1.0]))
    def turn_a_knob(self, beta: float) -> None:
        self.settings = self.settings.replace({"objective.beta": beta})
        self.trainer.set_settings(self.settings)

    @rule(refusing=st.booleans())
    def fill_or_free_the_disk(self, refusing: bool) -> None:
        self.refusing = refusing
        if refusing:
            self.full_disk.touch()
        else:
            self.full_disk.unlink(missing_ok=True)

    @precondition(lambda self: self.trainer.run_id and not self.refusing)
    @rule(back=st.integers(0, 3))
    def branch(self, back: int) -> None:
        self.pause()
        if self.trainer.state is State.PAUSED and self.trainer.head > (self.resume.step if self.resume else 0):
            with RunReader.open(self.path) as reader:
                assert reader.last == self.trainer.head
                point = reader.step(max(reader.last - back, reader.first))
            self._begin(self.settings, point, (self.path, point.step))

    @rule()
    def close(self) -> None:
        self.fill_or_free_the_disk(refusing=False)
        self.trainer.close_run()
        self.trainer.until_rest()
        self._look()
        self._check_run()

    def _check_run(self) -> None:
        """Assert that the window saw every update once, the file contains them, and the learner alone makes the
        same.
        """
        start = self.resume.step if self.resume else 0
        numbers = [n for fresh in self.taken for n in range(fresh.first, fresh.head + 1)]
        assert numbers == list(range(start + 1, self.trainer.head + 1))
        if not numbers:
            return
        with RunReader.open(self.path) as reader:
            assert reader.last == self.trainer.head
            steps = [reader.step(number) for number in numbers]
            losses = reader.series("loss", start)
        seen = np.concatenate([fresh.scalars["loss"] for fresh in self.taken])
        np.testing.assert_array_equal(seen, losses)
        np.testing.assert_array_equal(seen, [metrics(step)["loss"] for step in steps])
        alone = learner(steps[0].settings, resume=self.resume)
        for step in steps:
            alone.settings = step.settings
            [same] = islice(alone, 1)
            np.testing.assert_array_equal(step.logp, same.logp)

    def teardown(self) -> None:
        if hasattr(self, "trainer"):
            assert self.trainer.shutdown(10)
            self.patch.undo()
            self.folder.cleanup()


class AnythingWithKills(Anything):
    """The same user, whose runs are computed in a process that is sometimes killed."""

    @rule()
    def kill(self) -> None:
        self.pause()
        if self.trainer.worker.host.pid is not None:
            self.trainer.kill()

    @rule()
    def kill_while_it_runs(self) -> None:
        self.trainer.run(None)
        if self.trainer.worker.host.pid is not None:
            self.trainer.kill()
        self.pause()  # pressed Run may have been heard by the next process alone


def searched(machine: type[Anything], qtbot: QtBot, examples: int, *serve_in: Main) -> None:
    """Press buttons at random, in ``examples`` sequences from the start."""
    machine.qtbot, machine.serve_in = qtbot, serve_in
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_whatever_is_pressed_nothing_is_lost_doubled_or_different(qtbot: QtBot) -> None:
    searched(Anything, qtbot, 25)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_in_a_process_of_its_own_neither(qtbot: QtBot) -> None:
    searched(Anything, qtbot, 25, serve_on_a_disk_that_fills)


@pytest.mark.parametrize("examples", [4, pytest.param(30, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_nor_where_the_process_is_killed(qtbot: QtBot, examples: int) -> None:
    searched(AnythingWithKills, qtbot, examples, serve_on_a_disk_that_fills)
