"""Panels of recorded runs: at the size of real ones, with thousands of tokens per completion, and with an update named
by its trainer's step, not by its position in the record.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import Any

import numpy as np
import pytest

from app.panel_registry import PANELS, STEP_DETAIL, TOKEN_INSPECTOR
from app.panels.explain import ExplainPanel
from app.panels.step_detail import MOST_ROWS
from app.panels.training_history import TrainingHistoryPanel
from app.plotting.axis import Scale
from app.token_grid.cells import visible_text
from app.trainers.panel_rows import REWARD_WEIGHTS, STEP_SUMMARY, TOKEN_OVERVIEW
from app.trainers.recorded_run import RecordedRun
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from grpo_core.explain import Quantity
from grpo_core.record import Step
from grpo_core.trainers.importers.trace import Trace
from tests.app.trainers.panels.conftest import Drawn, shown_step
from tests.core.trainers.trace_files import DATA

COPIES = 400


class LongTrace(Trace):
    """A recorded run whose completions are repeated to many times their length."""

    def step(self, position: int) -> Step:
        step = super().step(position)
        longer: dict[str, Any] = {
            name: np.tile(array, (1,) * (array.ndim - 1) + (COPIES,))
            for name in ("tokens", "mask", "old_logp", "ref_logp", "logp", "entropy")
            if (array := getattr(step, name)) is not None
        }
        return dataclasses.replace(step, present=None, **longer)


@pytest.fixture
def run() -> RecordedRun:
    return RecordedRun(LongTrace(DATA / "grpo"))


def test_the_table_lists_the_tokens_of_the_completion_that_is_chosen(drawn: Drawn, run: RecordedRun) -> None:
    panel = drawn(STEP_DETAIL, run)
    step = shown_step(panel)
    assert step.mask.sum() > MOST_ROWS
    panel.workspace.select(row=2, token=1000)
    panel.draw(panel.workspace.view)
    assert panel.table.table.rowCount() == step.mask[2].sum()
    assert panel.table.table.value(0, 0) == 3 and "completion 3" in panel.foot.text()
    rows = panel.rows
    panel.workspace.select(row=2, token=1010)
    panel.draw(panel.workspace.view)
    assert panel.rows is rows and panel.table.currentIndex().row() == 1010, "another token needs no other table"
    panel.workspace.select(row=3, token=0)
    panel.draw(panel.workspace.view)
    assert {row.row for row in panel.rows} == {3}


def test_a_completion_of_thousands_of_tokens_is_laid_out_and_walked_to_its_end(drawn: Drawn, run: RecordedRun) -> None:
    panel = drawn(TOKEN_INSPECTOR, run)
    workspace = panel.workspace
    step = workspace.view.step.step
    assert step is not None
    last = int(step.mask[0].sum()) - 1
    assert last > 2000
    panel.grid.chosen.emit(0, last)
    panel.draw(workspace.view)
    assert workspace.selection.token == last
    assert panel.detail.accessibleName().startswith(f"Token {last + 1} of completion 1")


@pytest.mark.parametrize(
    ("token", "shown"), [("a", "a"), (" the", "·the"), ("\n", "⏎"), ("\t", "⇥"), ("  ", "··"), ("a b", "a b")]
)
def test_white_space_of_a_token_can_be_seen(token: str, shown: str) -> None:
    assert visible_text(token) == shown


@pytest.mark.parametrize("spec", [STEP_SUMMARY, REWARD_WEIGHTS, TOKEN_OVERVIEW], ids=lambda spec: spec.id)
@pytest.mark.parametrize("name", ["reward_infinite", "ever_longer", "kl_explodes"])
def test_panels_of_a_recorded_step_draw_what_is_not_finite_without_a_warning(
    drawn: Drawn, spec: PanelSpec[Panel], name: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel = drawn(spec, DATA.parent / "diseased" / name, width=500)
        panel.show()
        workspace = panel.workspace
        for position in (1, workspace.view.head):
            workspace.move_to(position)
            panel.draw(workspace.view)
            assert panel.summary(workspace.view) and not panel.grab().isNull()


NAMING = ("timeline", "metrics", "pipeline", "completions", "token_inspector", "what_if", "step_detail")


def drawn_at_first(drawn: Drawn, name: str) -> Panel:
    """Draw a panel at the first update of a run, which is the trainer's step 4."""
    panel = drawn(next(spec for spec in PANELS if spec.id == name), DATA.parent / "diseased" / "clip_too_narrow")
    workspace = panel.workspace
    assert [workspace.view.run.label(step) for step in range(1, workspace.view.head + 1)] == [4, 8]
    workspace.move_to(1)
    panel.draw(workspace.view)
    return panel


@pytest.mark.parametrize("name", NAMING)
def test_a_summary_names_the_trainers_step(drawn: Drawn, name: str) -> None:
    panel = drawn_at_first(drawn, name)
    assert re.match(r"(Update|Step) 4\b", panel.summary(panel.workspace.view))


def test_rewards_of_another_trainer_have_an_axis_that_shows_how_they_change(drawn: Drawn) -> None:
    panel = drawn_at_first(drawn, "training_history")
    panel.resize(700, 260)
    panel.draw(panel.workspace.view)
    assert isinstance(panel, TrainingHistoryPanel)
    chart = next(chart for chart in panel.charts if "reward_mean" in chart.names)
    for shown, scale in ((("reward_mean",), Scale()), (("reward_mean", "dead_groups"), Scale(low=0, high=1))):
        for curve in chart.curves:
            curve.setVisible(curve.key in shown)
        chart.refresh()
        assert chart.frame.y == scale


def test_an_explanation_names_the_trainers_step(drawn: Drawn) -> None:
    panel = drawn_at_first(drawn, "explain")
    assert isinstance(panel, ExplainPanel)
    panel.workspace.explain(Quantity("reward", row=0))
    panel.draw(panel.workspace.view)
    assert panel.heading.text().endswith("update 4")
