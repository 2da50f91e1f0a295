"""Cards: before a stage computes a number, the previous update's number stays, dimmed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication

from app.panel_registry import METRICS
from app.panels.metrics import MetricCard
from app.workspace.cursor import Stage
from grpo_core.config import Settings
from grpo_core.learners import learner, origin
from grpo_core.runs.run_file import RunWriter
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


def test_opening_a_card_tries_the_advice_on_its_number_and_shows_what_helps(driver: Driver, tmp_path: Path) -> None:
    settings = Settings().replace({"optimizer.learning_rate": 5.0, "seed": 0})
    with RunWriter.create(tmp_path / "run.grpo", settings, origin=origin(settings), title="Fast") as writer:
        for step in islice(learner(settings), 2):
            writer.append(step)
    driver.program.run_manager.open(tmp_path / "run.grpo")
    driver.program.workspace.move_to(2)
    card, panel = cards(driver)["clip_fraction"], driver.program.window.panels.of(METRICS)
    assert "may change that" in card.accessibleDescription() and "tried over" not in card.accessibleDescription()
    card.explain_current()
    driver.qtbot.waitUntil(lambda: not panel.tried.runner.busy)
    assert "Learning rate α: 5 → 1.25, tried over 6 updates:" in cards(driver)["clip_fraction"].accessibleDescription()
    driver.program.workspace.move_to(1)
    assert "tried over" not in cards(driver)["clip_fraction"].accessibleDescription()


def test_the_tooltip_of_a_card_is_that_of_the_update_shown_while_a_run_goes_on(driver: Driver) -> None:
    driver.run(5)
    card, workspace = cards(driver)["entropy"], driver.program.workspace
    workspace.running = True
    tips = []
    for step in (3, 4):
        driver.move_to(step)
        QApplication.sendEvent(card, QHelpEvent(QEvent.Type.ToolTip, QPoint(), card.mapToGlobal(QPoint())))
        tips.append(card.toolTip())
    workspace.running = False
    assert tips[0] != tips[1]
