"""The first minutes: run, step, stages, replay."""

from __future__ import annotations

import numpy as np
import pytest

from app.panels.metrics import MetricsPanel
from app.workspace.cursor import Stage
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver


def test_the_first_start_shows_update_zero_and_writes_no_file(driver: Driver) -> None:
    view = driver.program.workspace.view
    assert view.head == 0
    values = view.step.metrics
    assert values["kl"] == 0
    assert values["max_prob"] == pytest.approx(0.1)
    assert values["entropy"] == pytest.approx(np.log(10))
    cards = driver.program.window.panels["metrics"]
    assert isinstance(cards, MetricsPanel)
    assert [card.accessibleName() for card in cards.cards[2:5]] == [
        "Exact KL 0.000",
        "max π(a) 0.100",
        "Entropy 2.303",
    ]
    assert list(driver.program.paths.runs.iterdir()) == []


def test_within_two_hundred_updates_the_policy_climbs_onto_action_seven_and_the_run_stops(driver: Driver) -> None:
    driver.program.player.run()
    driver.rest()
    assert driver.head == 200
    now = driver.program.workspace.view.step.now
    assert now is not None
    assert now[0].argmax() == 6
    assert now[0, 6] > 0.8


def test_a_run_is_on_disk_from_its_first_update(driver: Driver) -> None:
    driver.run(1)
    run = driver.program.workspace.run
    assert run is not None
    with RunReader.open(run.path) as reader:
        assert reader.last == 1


def test_keys_run_step_and_step_back(driver: Driver) -> None:
    driver.program.window.activateWindow()
    driver.program.window.show_layout("Bandit")
    driver.settle()
    driver.program.actions["step"].trigger()
    driver.rest()
    driver.program.actions["step"].trigger()
    driver.rest()
    assert driver.program.workspace.cursor.step == 2
    driver.program.actions["step_back"].trigger()
    assert driver.program.workspace.cursor.step == 1
    driver.program.actions["step"].trigger()
    driver.rest()
    assert (driver.program.workspace.cursor.step, driver.head) == (2, 2)


def test_stages_reveal_an_update_and_never_compute(driver: Driver) -> None:
    driver.run(2)
    workspace = driver.program.workspace
    workspace.show_stage(Stage.SAMPLE)
    walked = []
    for _ in range(7):
        driver.program.actions["stage"].trigger()
        walked.append((workspace.cursor.stage, workspace.cursor.passed))
        if workspace.cursor.next_stage(4) is None:
            break
    assert walked == [(Stage.SCORE, -1), (Stage.NORMALIZE, -1), *[(Stage.UPDATE, n) for n in range(4)]]
    assert driver.head == 2
    driver.program.actions["stage"].trigger()
    driver.rest()
    assert (driver.head, workspace.cursor.step, workspace.cursor.stage) == (3, 3, Stage.SAMPLE)


def test_run_n_counts_exactly(driver: Driver) -> None:
    driver.program.actions["run_n"].trigger()
    driver.rest()
    assert driver.head == 50


def test_behind_the_head_run_replays_and_then_goes_live(driver: Driver) -> None:
    driver.run(5)
    driver.program.workspace.move_to(2)
    driver.program.player.set_length(3)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head == 8)
    driver.rest()
    assert (driver.head, driver.program.workspace.cursor.step) == (8, 8)
