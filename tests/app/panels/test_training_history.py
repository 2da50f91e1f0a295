"""Training history: the table of a run holds what that kind of run can have, and no series leaves its axis."""

from __future__ import annotations

import dataclasses

import numpy as np

from app.panels.registry import TRAINING_HISTORY
from grpo_core.metrics import METRICS
from tests.app.conftest import Driver


def test_a_bandits_table_has_no_columns_of_a_language_model(driver: Driver) -> None:
    driver.run(4)
    panel = driver.program.window.panels.of(TRAINING_HISTORY)
    panel.table.click()
    driver.settle()
    keys = [column.key for twin in panel.twins for column in twin.table.table.columns if column.key != "x"]
    assert "reward_mean" in keys
    assert not [key for key in keys if METRICS[key].language]


def test_rewards_above_one_fit_the_axis(driver: Driver) -> None:
    """As where a bonus is paid on top of a right answer."""
    driver.run(4)
    panel = driver.program.window.panels.of(TRAINING_HISTORY)
    unit = panel.charts[0]
    assert (unit.y_scale.low, unit.y_scale.high) == (0, 1)
    run = driver.program.workspace.run
    assert run is not None
    last = run.step(run.head)
    assert last is not None
    paid = {name: run.series[name].values[-1:] for name in METRICS} | {"reward_mean": np.array([1.45])}
    run.extend(paid, run.head + 1)
    run.keep(dataclasses.replace(last, step=run.head))
    driver.program.workspace.head_moved()
    driver.settle()
    low, high = unit.view_box.viewRange()[1]
    assert low <= 0 and high >= 1.45
