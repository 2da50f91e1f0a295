"""Cards: before a stage computes a number, the previous update's number stays, dimmed."""

from __future__ import annotations

import pytest

from app.panel_registry import METRICS
from app.panels.metric_card import MetricCard
from app.workspace.cursor import Stage
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


def cards(driver: Driver) -> dict[str, MetricCard]:
    driver.settle()
    return {card.name: card for card in driver.program.window.panels.of(METRICS).cards}


@pytest.mark.parametrize(
    ("stage", "passed", "known"),
    [
        (Stage.SAMPLE, -1, ()),
        (Stage.SCORE, -1, ("reward_mean",)),
        (Stage.NORMALIZE, -1, ("reward_mean",)),
        (Stage.UPDATE, 0, ("reward_mean",)),
    ],
)
def test_before_its_stage_a_card_keeps_the_last_value(
    driver: Driver, stage: Stage, passed: int, known: tuple[str, ...]
) -> None:
    driver.run(5)
    driver.program.workspace.move_to(4)
    before = {name: card.accessibleName() for name, card in cards(driver).items()}
    driver.program.workspace.move_to(5)
    now = {name: card.accessibleName() for name, card in cards(driver).items()}
    driver.program.workspace.show_stage(stage, passed)
    for name, card in cards(driver).items():
        if name == "updates":
            continue
        if name in known:
            assert card.accessibleName() == now[name]
        else:
            assert card.accessibleName() == f"{before[name]}, from the previous update"


def test_the_first_update_has_none_before_it(driver: Driver) -> None:
    driver.run(1)
    driver.program.workspace.show_stage(Stage.SAMPLE)
    assert cards(driver)["kl"].accessibleName().endswith("—")


def test_the_best_action_is_called_by_its_name(driver: Driver) -> None:
    """Its card used to say 6 while the bars said 7."""
    driver.run(40)
    panel = driver.program.window.panels.of(METRICS)
    last = panel.cards[-1]
    before, last.name = last.name, "best_action"
    try:
        view = driver.program.workspace.view
        panel.draw(view)
        place = int(view.run.series["best_action"].values[view.cursor.step - 1])
        assert last.accessibleName() == f"Best action {view.run.origin.vocabulary[place]}"
    finally:
        last.name = before
