"""The first minutes: run, step, stages, replay, branches."""

from __future__ import annotations

import numpy as np
import pytest

from app.panel_registry import METRICS
from app.workspace.cursor import Stage
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


def test_the_first_start_shows_update_zero_and_a_run_is_on_disk_from_its_first_update(driver: Driver) -> None:
    view = driver.program.workspace.view
    assert view.head == 0
    values = view.step.metrics
    assert values["kl"] == 0
    assert values["max_prob"] == pytest.approx(0.1)
    assert values["entropy"] == pytest.approx(np.log(10))
    cards = driver.program.window.panels.of(METRICS).cards
    assert [card.accessibleName() for card in cards[2:5]] == ["Exact KL 0.000", "max π(a) 0.100", "Entropy 2.303"]
    assert list(driver.program.paths.runs.iterdir()) == []
    driver.run(1)
    with RunReader.open(driver.shown_run.path) as reader:
        assert reader.last == 1


def test_within_two_hundred_updates_the_policy_climbs_onto_action_seven_and_the_run_stops(driver: Driver) -> None:
    driver.program.player.run()
    driver.rest()
    assert driver.head == 200
    now = driver.program.workspace.view.step.now
    assert now is not None
    assert now[0].argmax() == 6
    assert now[0, 6] > 0.8


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


def test_behind_the_head_run_replays_and_then_goes_live(driver: Driver) -> None:
    driver.run(5)
    driver.program.workspace.move_to(2)
    driver.program.player.set_length(3)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head == 8)
    driver.rest()
    assert (driver.head, driver.program.workspace.cursor.step) == (8, 8)


def test_a_branch_with_the_same_settings_repeats_its_parent_bit_for_bit(driver: Driver) -> None:
    driver.run(12)
    workspace = driver.program.workspace
    parent = driver.shown_run
    workspace.move_to(5)
    driver.program.actions["branch"].trigger()
    driver.settle()
    child = driver.shown_run
    assert child is not parent
    assert child.head == 5
    driver.run(7)
    for step in range(1, 13):
        mine, theirs = child.step(step), parent.step(step)
        assert mine is not None and theirs is not None
        assert np.array_equal(mine.logp, theirs.logp)


def test_a_branch_with_another_beta_differs_from_there_on(driver: Driver) -> None:
    driver.run(8)
    workspace = driver.program.workspace
    parent = driver.shown_run
    workspace.move_to(4)
    workspace.editing.edit({"objective.beta": 1.0}, "Change beta")
    driver.program.actions["branch"].trigger()
    driver.run(4)
    child = driver.shown_run
    assert [(first, s.objective.beta) for first, s in child.changes] == [(1, 0.04), (5, 1.0)]
    assert child.series["kl"].values[3] == parent.series["kl"].values[3]
    assert child.series["kl"].values[7] != parent.series["kl"].values[7]


def test_a_branch_of_a_branch_reaches_back_to_the_first_run(driver: Driver) -> None:
    driver.run(6)
    workspace = driver.program.workspace
    first = driver.shown_run
    for at in (4, 2):
        workspace.move_to(at)
        driver.program.actions["branch"].trigger()
        driver.run(3)
    last = driver.shown_run
    assert last.head == 5
    assert np.array_equal(last.step(1).logp, first.step(1).logp)  # type: ignore[union-attr]
