"""First steps: each experience shows what it promises, and leaves the user at the controls."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from app.controllers.first_steps import (
    CHEAT,
    EXPERIENCES,
    LEARN,
    MODEL_CHEATS,
    PULL_BACK,
    SAME_ELSEWHERE,
    TOKENS,
    Experience,
    Text,
)
from app.panel_registry import CONTROLS, EVOLUTION
from app.training.controller import State
from app.workspace.player import Mode
from app.workspace.run_handle import RunHandle
from grpo_core.bandit.tasks import landscape_rewards
from grpo_core.config import language_settings
from tests.app.conftest import Driver


def at_once(experience: Experience) -> Experience:
    """Return the same experience at the highest possible speed."""
    return replace(experience, acts=tuple(replace(act, speed=None) for act in experience.acts))


def play(driver: Driver, experience: Experience) -> None:
    """Play an experience to its end."""
    driver.program.first_steps.begin(at_once(experience))
    driver.qtbot.waitUntil(lambda: driver.program.first_steps.playing is None, timeout=30_000)
    driver.settle()


def written(text: Text, run: RunHandle) -> str:
    """Return a text of an experience that began with the run's recorded updates."""
    return text if isinstance(text, str) else text(run, 100)


def assert_has_keyboard(driver: Driver, path: str) -> None:
    window = driver.program.window
    row = next(row for row in window.panels.of(CONTROLS).rows if path in row.paths)
    assert row.isAncestorOf(window.focusWidget())


def probability(driver: Driver, action: int, update: int) -> float:
    step = driver.program.workspace.view.run.step(update)
    assert step is not None
    logp = step.distribution(step.passes)
    assert logp is not None
    return float(np.exp(logp[0, action - 1]))


@pytest.mark.quick_cases("Watch it learn", "A language model, token by token", "A language model learns to cheat")
@pytest.mark.parametrize("experience", [*EXPERIENCES, CHEAT], ids=lambda one: one.name)
def test_an_experience_plays_to_its_end_and_leaves_the_user_at_the_controls(
    driver: Driver, experience: Experience
) -> None:
    program = driver.program
    program.player.set_speed(30.0)
    tempi = dict(program.player.tempi)
    play(driver, experience)
    run = program.workspace.run
    assert run is not None and run.title == experience.name and [run] == program.workspace.runs
    assert run.head == (100 if experience.start else 0) + sum(act.updates for act in experience.acts)
    assert program.player.mode is Mode.RESTING and program.player.tempi == tempi
    assert driver.messages == [written(experience.then, run)] and program.window.panels.of(experience.panel).seen
    if experience.control:
        assert_has_keyboard(driver, experience.control)
    match experience.name:
        case LEARN.name:
            assert probability(driver, 7, 1) < 0.2 and probability(driver, 7, run.head) > 0.9
        case PULL_BACK.name:
            kl = run.series["kl"].values
            assert probability(driver, 7, 30) > 0.9 and probability(driver, 7, 70) < 0.5 and kl[69] < kl[29] / 3
        case CHEAT.name:
            reward = run.series["reward_mean"].values
            assert probability(driver, 7, 40) > 0.8 and probability(driver, 7, 100) < 0.1 < reward[99] - reward[39]
            assert probability(driver, 2, 100) > 0.9
        case TOKENS.name:
            assert program.workspace.view.step.step is not None and run.origin.settings.is_language
        case MODEL_CHEATS.name:
            held_out, reward = (run.series[name].values for name in ("accuracy_greedy", "reward_mean"))
            assert held_out[90] > 0.95 > 0.2 > held_out[120] and reward[95:].min() > 1.0
            assert "Update 101 → 121" in driver.messages[0]
            evolution = program.window.panels.of(EVOLUTION)
            driver.qtbot.waitUntil(lambda: not evolution.busy)
            driver.settle()
            turned = re.search(r"since update (\d+) it is .*wrong", evolution.story.text())
            assert turned is not None and int(turned[1]) > 98, "the updates before were thinned out"
        case name:
            raise AssertionError(f"nothing is held of {name}")


def test_an_act_that_ends_while_a_frame_is_drawn_is_followed_by_the_next(driver: Driver) -> None:
    program, workspace = driver.program, driver.program.workspace

    def let_the_act_end() -> None:
        program.controller.worker.go_on()
        driver.qtbot.waitUntil(lambda: program.controller.state is State.PAUSED)

    workspace.drawing.connect(lambda parts: parts.append(let_the_act_end) if workspace.divided else None)
    play(driver, LEARN)
    assert driver.messages == [LEARN.then]


def test_the_policy_leaves_an_action_whose_diamond_is_dragged_down_as_the_last_sentence_says(driver: Driver) -> None:
    play(driver, LEARN)
    own = landscape_rewards(driver.program.workspace.editing.settings.bandit).tolist()
    own[6] = 0.0
    driver.program.workspace.editing.edit({"task.landscape": "custom", "task.custom": tuple(own)}, "Drag a reward")
    driver.program.player.set_speed(None)
    driver.run(100)
    assert probability(driver, 7, driver.head) < 0.1


def test_whoever_pauses_has_the_controls(driver: Driver) -> None:
    program = driver.program
    program.player.set_speed(30.0)
    program.first_steps.begin(PULL_BACK)
    driver.qtbot.waitUntil(lambda: driver.head > 0)
    program.player.toggle()
    driver.rest()
    driver.qtbot.waitUntil(lambda: program.first_steps.playing is None)
    assert program.player.speed == 30.0 and driver.head < 30


def test_whoever_shows_another_run_is_not_taken_back(driver: Driver) -> None:
    program = driver.program
    usual = program.player.speed
    program.first_steps.begin(PULL_BACK)
    driver.qtbot.waitUntil(lambda: driver.head > 0)
    tempi = dict(program.player.tempi)
    other = program.run_manager.new_run(language_settings())
    driver.qtbot.waitUntil(lambda: program.first_steps.playing is None)
    assert program.workspace.run is other
    assert program.player.tempi == {**tempi, False: replace(tempi[False], speed=usual)}, "each kind keeps its own speed"


def test_a_run_with_updates_stays_in_the_list_beside_an_experience(driver: Driver) -> None:
    driver.run(2)
    before = driver.program.workspace.run
    driver.program.first_steps.begin(LEARN)
    assert [run.title for run in driver.program.workspace.runs] == ["Run 1", LEARN.name]
    assert before in driver.program.workspace.runs
    driver.program.player.pause()
    driver.rest()


def test_what_both_kinds_of_policy_show_is_offered_on_the_other(driver: Driver) -> None:
    program = driver.program
    play(driver, CHEAT)
    line = program.messages.lines[-1]
    text, other = SAME_ELSEWHERE[CHEAT.name]
    assert other is MODEL_CHEATS and [button.text() for button in line.buttons] == [text]
    line.buttons[0].click()
    assert program.first_steps.playing is MODEL_CHEATS
    program.player.pause()
    driver.rest()


def test_a_start_that_cannot_be_copied_is_said_and_leaves_the_run_as_it_was(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, before = driver.program, driver.program.workspace.run
    monkeypatch.setattr("app.controllers.first_steps.resource", lambda name: program.paths.runs / "not there.grpo")
    program.first_steps.begin(MODEL_CHEATS)
    assert program.workspace.run is before and program.first_steps.playing is None
    assert len(driver.messages) == 1 and "not there.grpo" in driver.messages[0]
