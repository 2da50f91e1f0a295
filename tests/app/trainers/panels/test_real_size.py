"""Panels at the size of real runs: thousands of tokens per completion, hundreds of completions."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pytest

from app.panel_registry import STEP_DETAIL, TOKEN_INSPECTOR
from app.panels.step_detail import MOST_ROWS
from app.theme.tokens import LIGHT
from app.token_grid.cells import visible_text
from app.trainers.panel_rows import REWARD_WEIGHTS, STEP_SUMMARY, TOKEN_OVERVIEW
from app.trainers.recorded_run import RecordedRun
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.record import Step
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.trace_files import DATA

P = TypeVar("P", bound=Panel)
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
def workspace(qapp: object) -> Iterator[Workspace]:
    made = Workspace(Settings(), LIGHT)
    made.activate(RecordedRun(LongTrace(DATA / "grpo")))
    yield made
    made.close()


def drawn(workspace: Workspace, spec: PanelSpec[P]) -> P:
    panel = spec.make(workspace)
    panel.resize(700, 400)
    panel.draw(workspace.view)
    return panel


def test_the_table_lists_the_tokens_of_the_completion_that_is_chosen(workspace: Workspace) -> None:
    step = workspace.view.step.step
    assert step is not None and step.mask.sum() > MOST_ROWS
    workspace.select(row=2, token=1000)
    panel = drawn(workspace, STEP_DETAIL)
    assert panel.table.table.rowCount() == step.mask[2].sum()
    assert panel.table.table.value(0, 0) == 3 and "completion 3" in panel.foot.text()
    panel.deleteLater()


def test_a_completion_of_thousands_of_tokens_is_laid_out_and_walked_to_its_end(workspace: Workspace) -> None:
    panel = drawn(workspace, TOKEN_INSPECTOR)
    step = workspace.view.step.step
    assert step is not None
    last = int(step.mask[0].sum()) - 1
    assert last > 2000
    panel.grid.chosen.emit(0, last)
    panel.draw(workspace.view)
    assert workspace.selection.token == last
    assert panel.detail.accessibleName().startswith(f"Token {last + 1} of completion 1")
    panel.deleteLater()


@pytest.mark.parametrize(
    ("token", "shown"), [("a", "a"), (" the", "·the"), ("\n", "⏎"), ("\t", "⇥"), ("  ", "··"), ("a b", "a b")]
)
def test_white_space_of_a_token_can_be_seen(token: str, shown: str) -> None:
    assert visible_text(token) == shown


def test_another_token_of_the_same_completion_needs_no_other_table(workspace: Workspace) -> None:
    workspace.select(row=2, token=1000)
    panel = drawn(workspace, STEP_DETAIL)
    rows = panel.rows
    workspace.select(row=2, token=1010)
    panel.draw(workspace.view)
    assert panel.rows is rows and panel.table.currentIndex().row() == 1010
    workspace.select(row=3, token=0)
    panel.draw(workspace.view)
    assert {row.row for row in panel.rows} == {3}
    panel.deleteLater()


@pytest.mark.parametrize("spec", [STEP_SUMMARY, REWARD_WEIGHTS, TOKEN_OVERVIEW], ids=lambda spec: spec.id)
@pytest.mark.parametrize("name", ["reward_infinite", "ever_longer", "kl_explodes"])
def test_panels_of_a_recorded_step_draw_what_is_not_finite_without_a_warning(
    qapp: object, spec: PanelSpec[Panel], name: str
) -> None:
    made = Workspace(Settings(), LIGHT)
    made.activate(RecordedRun(Trace(DATA.parent / "diseased" / name)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel = spec.make(made)
        panel.resize(500, 400)
        panel.show()
        for position in (1, made.view.head):
            made.move_to(position)
            panel.draw(made.view)
            assert panel.summary(made.view) and not panel.grab().isNull()
    made.close()
    panel.deleteLater()
