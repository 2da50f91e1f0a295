"""Completions by prompt, and a prompt's rollouts as a tree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from app.trainers.panel_rows import COMPLETIONS
from app.trainers.panels.completions.panel import CompletionsPanel
from app.trainers.panels.completions.rows import BARS, MOST_BARS, PROMPTS, Filter, batch_of, prompts_of, strip
from tests.app.trainers.panels.test_completions import workspace_of
from tests.core.trainers.sources import AGENT

KEYS = [column.key for column in PROMPTS]


@pytest.fixture
def panel(qapp: QApplication) -> Iterator[CompletionsPanel]:
    workspace = workspace_of(AGENT)
    panel = COMPLETIONS.make(workspace)
    panel.resize(1000, 500)
    panel.draw(workspace.view)
    yield panel
    workspace.close()
    panel.deleteLater()


def test_a_prompt_is_a_row_with_what_its_completions_have_in_common(panel: CompletionsPanel) -> None:
    batch = batch_of(panel.workspace.view)
    assert batch is not None
    found = prompts_of(batch)
    table = panel.workspace.run.table(panel.workspace.view.cursor.step)  # type: ignore[union-attr]
    for number, rows, cells in zip(found.groups, found.rows, found.cells, strict=True):
        told = dict(zip(KEYS, cells, strict=True))
        paid = table.rewards[list(rows)]
        assert set(table.group[list(rows)]) == {number - 1} and told["count"] == len(rows) == len(str(told["strip"]))
        assert told["reward"] == pytest.approx(paid.mean()) and told["spread"] == pytest.approx(paid.std(ddof=1))
        turns = [table.trajectories[row] for row in rows]
        assert told["turns"] == pytest.approx(np.mean([one.spoken for one in turns]))
        assert told["errors"] == sum(one.failures for one in turns)


def test_a_strip_has_a_bar_a_reward_and_a_dot_for_what_was_not_scored() -> None:
    assert strip(np.array([1.0, 0.0, np.nan, 0.5]), 0.0, 1.0) == f"{BARS[0]}{BARS[4]}{BARS[-1]}·"
    assert strip(np.array([2.0, 2.0]), 2.0, 2.0) == BARS[0] * 2
    assert len(strip(np.linspace(0, 1, 500), 0.0, 1.0)) == MOST_BARS


def test_a_prompt_that_is_opened_lists_its_completions_alone(panel: CompletionsPanel) -> None:
    panel.by_prompt.setChecked(True)
    count = panel.table.table.rowCount()
    assert panel.prompts.isVisibleTo(panel) and not panel.table.isVisibleTo(panel)
    panel.prompts.activated_cell.emit(1, "strip")
    assert not panel.by_prompt.isChecked() and panel.filter.group == 2
    groups = {panel.table.table.value(place, 1) for place in range(panel.table.table.rowCount())}
    assert groups == {2} and 0 < panel.table.table.rowCount() < count
    panel.by_prompt.setChecked(True)
    panel.by_prompt.setChecked(False)
    assert panel.table.table.rowCount() == count, "without a prompt chosen all are listed again"


def test_prompts_are_filtered_by_their_completions(panel: CompletionsPanel) -> None:
    batch = batch_of(panel.workspace.view)
    assert batch is not None
    found = prompts_of(batch)
    assert found.listed(batch, Filter()) == list(range(len(found.groups)))
    assert found.listed(batch, Filter(text="no completion says this")) == []
    few = found.listed(batch, Filter(column="tools", low=2))
    assert all(any(batch.trajectories[row].called >= 2 for row in found.rows[n]) for n in few)  # type: ignore[union-attr]


def test_the_tree_has_the_common_prompt_once_and_every_rollout(panel: CompletionsPanel) -> None:
    panel.workspace.select(row=0)
    panel.tree.setChecked(True)
    panel.draw(panel.workspace.view)
    text = panel.here.text.toPlainText()
    batch = batch_of(panel.workspace.view)
    assert batch is not None
    rows = prompts_of(batch).rows[0]
    assert text.count("Use the calculator.") == 1
    assert all(f"#{row + 1}: R " in text for row in rows)
    panel.tree.setChecked(False)
    panel.draw(panel.workspace.view)
    assert "Rollouts of the prompt" not in panel.here.text.toPlainText()
