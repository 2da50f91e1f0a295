"""Panels name an update of a recorded run by its trainer's step, not by its position in the record."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from app.panel_registry import PANELS
from app.panels.explain import ExplainPanel
from app.panels.training_history import TrainingHistoryPanel
from app.plotting.axis import Scale
from app.theme.tokens import LIGHT
from app.trainers.recorded_run import RecordedRun
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.explain import Quantity
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.trace_files import DATA

NAMING = ("timeline", "metrics", "pipeline", "completions", "token_inspector", "what_if", "step_detail")


@pytest.fixture
def workspace(qapp: object) -> Iterator[Workspace]:
    made = Workspace(Settings(), LIGHT)
    run = RecordedRun(Trace(DATA.parent / "diseased" / "clip_too_narrow"))
    made.activate(run)
    assert [run.label(step) for step in range(1, run.head + 1)] == [4, 8]
    made.move_to(1)
    yield made
    made.close()


@pytest.mark.parametrize("name", NAMING)
def test_a_summary_names_the_trainers_step(workspace: Workspace, name: str) -> None:
    panel = next(spec for spec in PANELS if spec.id == name).make(workspace)
    panel.draw(workspace.view)
    assert re.match(r"(Update|Step) 4\b", panel.summary(workspace.view))
    panel.deleteLater()


def test_rewards_of_another_trainer_have_an_axis_that_shows_how_they_change(workspace: Workspace) -> None:
    panel = next(spec for spec in PANELS if spec.id == "training_history").make(workspace)
    panel.resize(700, 260)
    panel.draw(workspace.view)
    assert isinstance(panel, TrainingHistoryPanel)
    chart = next(chart for chart in panel.charts if "reward_mean" in chart.names)
    for shown, scale in ((("reward_mean",), Scale()), (("reward_mean", "dead_groups"), Scale(low=0, high=1))):
        for curve in chart.curves:
            curve.setVisible(curve.key in shown)
        chart.refresh()
        assert chart.frame.y == scale
    panel.deleteLater()


def test_an_explanation_names_the_trainers_step(workspace: Workspace) -> None:
    panel = next(spec for spec in PANELS if spec.id == "explain").make(workspace)
    assert isinstance(panel, ExplainPanel)
    workspace.explain(Quantity("reward", row=0))
    panel.draw(workspace.view)
    assert panel.heading.text().endswith("update 4")
    panel.deleteLater()
