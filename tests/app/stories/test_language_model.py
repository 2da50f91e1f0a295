"""A newcomer and a language model: choose it, run it, look into it, go back, score an answer."""

from __future__ import annotations

import os
import signal
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.panel_registry import EVOLUTION, METRICS, SCORE_YOUR_OWN
from app.training.controller import State
from grpo_core.config import PRESETS, language_settings
from grpo_core.config.presets import preset_of
from grpo_core.explain import Quantity, explain_from
from grpo_core.lm.engines import ENGINES
from grpo_core.lm.interface import NUMPY, TORCH, engine_of
from grpo_core.lm.learner import LanguageLearner
from grpo_core.metrics import metrics
from grpo_core.runs.run_file import RunWriter
from grpo_core.texts import completion_text
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


def quick(driver: Driver) -> Driver:
    """Load a small language model's run, at full speed."""
    driver.program.runs.new_language_run()
    assert driver.program.controller.state is State.PREPARING, "it loads at once, not with the first update"
    wait(driver)
    small = {"task.prompts": 3, "learner.group_size": 4, "task.accuracy_every": 3}
    driver.program.workspace.editing.edit(small, "Smaller")
    driver.program.player.set_speed(None)
    driver.settle()
    return driver


def wait(driver: Driver) -> None:
    resting = (State.PAUSED, State.FAILED)
    driver.qtbot.waitUntil(lambda: driver.program.controller.state in resting, timeout=40_000)
    driver.settle()


def run(driver: Driver, updates: int) -> None:
    driver.program.player.run_n(updates)
    wait(driver)


def test_it_is_chosen_run_looked_into_and_scrubbed(driver: Driver) -> None:
    quick(driver)
    program, workspace = driver.program, driver.program.workspace
    assert program.preferences.current.layout == "Language model"
    assert program.player.length == 150
    for name in ("evolution", "score_your_own", "token_inspector", "metrics", "training_history"):
        assert program.window.panels[name].summary(workspace.view), name
    run(driver, 5)
    assert driver.head == 5
    cards = program.window.panels.of(METRICS)
    assert [card.name for card in cards.cards][:3] == ["updates", "accuracy", "kl"]
    view = workspace.view
    assert 0 <= view.step.metrics["accuracy"] <= 1
    assert np.isfinite(view.run.series["accuracy_greedy"].values[[0, 3]]).all()
    assert np.isnan(view.run.series["accuracy_greedy"].values[[1, 2, 4]]).all()
    for name in ("advantage", "ratio", "kl", "gradient", "reward", "weight"):
        workspace.explain(Quantity(name, row=5, token=1))
        driver.settle()
        node = workspace.view.step.numbers
        assert node is not None and explain_from(node, Quantity(name, row=5, token=1)).agrees
    driver.move_to(2)
    assert workspace.view.step.number == 2
    assert workspace.view.step.step is not None and workspace.view.step.step.tokens.shape[0] == 12


def test_evolution_shows_how_answers_changed_and_jumps_there(driver: Driver) -> None:
    quick(driver)
    program = driver.program
    program.workspace.editing.edit({"optimizer.learning_rate": 1e-3}, "Faster")
    panel = program.window.panels.of(EVOLUTION)
    program.window.docks["evolution"].raise_()
    run(driver, 8)
    evolution = panel.of_run()
    assert evolution is not None
    driver.qtbot.waitUntil(lambda: evolution.read == 8)
    assert len(evolution.prompts) == 8
    changed = [(place, change) for place, known in enumerate(evolution.changes) for change in known[1:]]
    assert changed, "at this rate some answer is another one after eight updates"
    place, change = changed[0]
    panel.rows.chosen.emit(place)
    panel.rows.jumped.emit(change.step)
    driver.settle()
    assert program.workspace.cursor.step == change.step
    before = evolution.at(place, change.step - 1)
    assert before is not None and before.text != change.text


def test_an_answer_of_ones_own_is_placed_in_the_live_group(driver: Driver) -> None:
    quick(driver)
    run(driver, 2)
    program = driver.program
    panel = program.window.panels.of(SCORE_YOUR_OWN)
    program.window.docks["score_your_own"].raise_()
    driver.settle()
    step = driver.shown_step
    text = completion_text(step, 0, program.workspace.view.run.origin).removesuffix("⏎")
    panel.field.setText(text)
    with driver.qtbot.waitSignal(program.workspace.answered, timeout=20_000) as heard:
        panel.field.returnPressed.emit()
    driver.settle()
    assert np.abs(heard.args[1].logp - step.old_logp[0][step.mask[0]]).max() < 1e-5
    assert "advantage" in panel.summary(program.workspace.view)
    panel.field.setText("9" * 30)
    with driver.qtbot.waitSignal(program.workspace.refused, timeout=20_000):
        panel.ask()
    driver.settle()
    assert "at most 24" in panel.summary(program.workspace.view)


def test_a_branch_goes_on_from_the_past_with_other_settings(driver: Driver) -> None:
    quick(driver)
    run(driver, 4)
    parent = driver.shown_run
    driver.program.workspace.move_to(2)
    driver.program.workspace.editing.edit({"objective.beta": 0.5}, "Hold it")
    driver.program.actions["branch"].trigger()
    wait(driver)
    run(driver, 2)
    branch = driver.shown_run
    assert branch is not parent and branch.head == 4
    one, other = parent.step(3), branch.step(3)
    assert one is not None and other is not None
    assert np.array_equal(one.tokens, other.tokens), "the same policy and the same random numbers draw the same"
    assert one.settings.objective.beta != other.settings.objective.beta == 0.5
    assert not np.array_equal(one.logp[-1], other.logp[-1])


@pytest.mark.long
def test_a_killed_model_is_told_and_run_loads_it_again(driver: Driver) -> None:
    quick(driver)
    run(driver, 2)
    pid = driver.program.controller.worker.host.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    driver.qtbot.waitUntil(lambda: any("killed by signal 9" in message for message in driver.messages))
    assert driver.head == 2
    run(driver, 2)
    assert driver.head == 4


@pytest.mark.own_window
def test_without_torch_it_learns_and_answers_all_the_same(without_torch: Path, driver: Driver) -> None:
    quick(driver)
    run(driver, 3)
    program = driver.program
    (device,) = program.controller.worker.host.devices
    assert "NumPy" in device
    step = driver.shown_step
    assert step.step == 3 and engine_of(step) == NUMPY
    panel = program.window.panels.of(SCORE_YOUR_OWN)
    program.window.docks["score_your_own"].raise_()
    driver.settle()
    panel.field.setText(completion_text(step, 0, program.workspace.view.run.origin).removesuffix("⏎"))
    with driver.qtbot.waitSignal(program.workspace.answered, timeout=20_000) as heard:
        panel.field.returnPressed.emit()
    assert np.abs(heard.args[1].logp - step.old_logp[0][step.mask[0]]).max() < 1e-5
    assert driver.messages == []


@pytest.fixture
def run_of_torch(tmp_path: Path) -> Path:
    """A run file with two updates computed by torch."""
    small = language_settings().replace({"task.prompts": 2, "learner.group_size": 4, "task.held_out": 8})
    path = tmp_path / "torch.grpo"
    made = LanguageLearner(small, make_policy=ENGINES[TORCH])
    with RunWriter.create(path, small) as writer:
        for step in islice(made, 2):
            writer.append(step, metrics(step))
        writer.commit()
    return path


def test_a_run_of_torch_goes_on_with_torch_and_has_nothing_to_say(run_of_torch: Path, driver: Driver) -> None:
    driver.open(run_of_torch)
    run(driver, 1)
    third = driver.shown_step
    assert third.step == 3 and engine_of(third) == TORCH
    assert not any("here it continues" in message for message in driver.messages)


@pytest.mark.own_window
def test_a_run_of_torch_goes_on_with_numpy_which_says_so(
    run_of_torch: Path, without_torch: Path, driver: Driver
) -> None:
    driver.open(run_of_torch)
    run(driver, 1)
    assert driver.head == 3
    (said,) = (message for message in driver.messages if "NumPy" in message)
    assert said.startswith("The run was computed with torch; here it continues with NumPy.") and " nats" in said
    third = driver.shown_step
    assert engine_of(third) == NUMPY


def test_the_policy_selector_starts_a_run_of_the_other_kind(driver: Driver) -> None:
    controls, titles = driver.program.window.panels["controls"], [run.title for run in driver.program.workspace.runs]
    controls.kind.activated.emit(1)  # type: ignore[attr-defined]
    wait(driver)
    assert driver.program.workspace.view.next_settings.is_language
    shown = {row.paths[0] for row in controls.rows if not row.isHidden()}  # type: ignore[attr-defined]
    assert "task.problem" in shown and "task.landscape" not in shown
    for name in PRESETS:
        controls.preset.activated.emit(controls.preset.findData(name))  # type: ignore[attr-defined]
        driver.settle()
        assert preset_of(driver.program.workspace.editing.wanted) in (name, "GRPO (TRL 1.16 defaults)")
    controls.kind.activated.emit(0)  # type: ignore[attr-defined]
    driver.settle()
    assert not driver.program.workspace.view.next_settings.is_language
    assert [run.title for run in driver.program.workspace.runs] == titles, "none of the three had an update"


@pytest.mark.long
@pytest.mark.own_window
def test_closing_in_the_middle_of_an_update_is_clean(qtbot: QtBot, tmp_path: Path, driver: Driver) -> None:
    quick(driver)
    driver.program.workspace.editing.edit({"task.prompts": 64, "learner.group_size": 64}, "Large")
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.program.controller.state is State.RUNNING)
    driver.program.window.close()
    driver.qtbot.waitUntil(lambda: driver.program.window.may_close)
