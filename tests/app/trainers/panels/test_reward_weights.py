"""Reward weights in the window: sliders, pasted scores, and the completions whose advantages change sign."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QGuiApplication

from app.trainers.panel_rows import REWARD_WEIGHTS
from app.trainers.panels.reward_weights import COLUMNS, RewardWeightsPanel
from grpo_core import recompute
from grpo_core.trainers.reweighting import reweighted
from tests.app.trainers.panels.conftest import Drawn, bandit, shown_step
from tests.core.trainers.trace_files import DATA

KEYS = [column.key for column in COLUMNS]


@pytest.fixture
def panel(drawn: Drawn) -> RewardWeightsPanel:
    return drawn(REWARD_WEIGHTS, DATA / "grpo")


def column(panel: RewardWeightsPanel, key: str) -> list[object]:
    table = panel.table.table
    return [table.value(row, KEYS.index(key)) for row in range(table.rowCount())]


def test_it_opens_at_the_recorded_weights_with_nothing_turned(panel: RewardWeightsPanel) -> None:
    assert column(panel, "advantage_now") == pytest.approx(column(panel, "advantage_then"), abs=1e-5)
    assert set(column(panel, "turned")) == {""} and panel.sentence.text().startswith("None of")
    assert "the trainer's" in panel.note.text()


def test_a_slider_changes_rewards_advantages_and_pushes_at_once(panel: RewardWeightsPanel) -> None:
    panel.sliders.sliders[0].setValue(-100)
    panel.draw(panel.workspace.view)
    step = shown_step(panel)
    other = reweighted(step, panel.sliders.weights)
    assert panel.sliders.weights[0] == -1.0
    assert column(panel, "now") == other.rewards.tolist()
    assert column(panel, "advantage_now") == recompute.advantage(other).tolist()
    push, pull = recompute.token_gradient(other, panel.workspace.view.step.passed)
    whole = push if pull is None else push + pull
    assert column(panel, "push_now") == (-whole.sum(axis=-1)).tolist()
    turned = sum(bool(word) for word in column(panel, "turned"))
    assert turned and panel.sentence.text().startswith(f"{turned} of")
    panel.reset.click()
    panel.draw(panel.workspace.view)
    assert set(column(panel, "turned")) == {""}


def test_pasted_scores_take_the_place_of_a_function_until_they_are_dropped(panel: RewardWeightsPanel) -> None:
    step = shown_step(panel)
    scores = np.arange(len(step.rewards), dtype=float)
    QGuiApplication.clipboard().setText("\n".join(map(str, scores)))
    panel.sliders.pasting[0].click()
    panel.draw(panel.workspace.view)
    assert step.reward_parts is not None
    parts = step.reward_parts.astype(float)
    parts[:, 0] = scores
    assert column(panel, "now") == reweighted(step, panel.sliders.weights, parts).rewards.tolist()
    panel.sliders.pasting[0].click()  # it says “Recorded scores” now
    panel.draw(panel.workspace.view)
    assert column(panel, "now") == pytest.approx(column(panel, "then"), abs=1e-6)


def test_scores_that_do_not_fit_are_refused_beside_the_sliders(panel: RewardWeightsPanel) -> None:
    before = column(panel, "now")
    panel.paste(0, "1\n2")
    panel.draw(panel.workspace.view)
    assert panel.refusal.isVisibleTo(panel) and "2 lines" in panel.refusal.text()
    assert column(panel, "now") == before


def test_weights_stay_from_step_to_step_and_pasted_scores_do_not(panel: RewardWeightsPanel) -> None:
    panel.sliders.sliders[0].setValue(0)
    panel.paste(0, "\n".join("1" for _ in shown_step(panel).rewards))
    panel.draw(panel.workspace.view)
    assert [*panel.scores] == [0]
    panel.workspace.move_to(1)
    panel.draw(panel.workspace.view)
    assert panel.scores == {} and panel.sliders.weights[0] == 0.0


def test_a_run_without_tokens_says_why(drawn: Drawn) -> None:
    panel = drawn(REWARD_WEIGHTS, DATA.parent / "sources" / "trl")
    assert panel.empty.isVisibleTo(panel) and panel.empty.text() == panel.workspace.view.run.why_no_step


def test_a_run_of_our_own_says_what_is_weighted_here(panel: RewardWeightsPanel) -> None:
    panel.workspace.activate(bandit())
    panel.draw(panel.workspace.view)
    assert "File > Open" in panel.empty.text()
