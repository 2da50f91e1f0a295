"""This step: groups without a signal and leading tokens, for runs with tokens, with text only, and our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.panel_registry import TOKEN_INSPECTOR, WHAT_IF
from app.trainers.panel_rows import COMPLETIONS, STEP_SUMMARY
from app.trainers.panels.step_summary import GROUPS, TOKENS, StepSummaryPanel
from app.trainers.recorded_run import RecordedRun
from grpo_core.leading import CONTRIBUTIONS
from grpo_core.trainers.importers import open_source
from tests.app.conftest import Driver
from tests.app.trainers.panels.conftest import Drawn, bandit
from tests.core.trainers.trace_files import DATA

DISEASED, SOURCES = DATA.parent / "diseased", DATA.parent / "sources"
KEYS, GROUP_KEYS = [column.key for column in TOKENS], [column.key for column in GROUPS]


@pytest.fixture
def panel(drawn: Drawn) -> StepSummaryPanel:
    return drawn(STEP_SUMMARY, width=371, height=450)


def show(panel: StepSummaryPanel, path: Path) -> StepSummaryPanel:
    panel.workspace.activate(RecordedRun(open_source(path)))
    panel.draw(panel.workspace.view)
    return panel


def rank_by(panel: StepSummaryPanel, name: str) -> None:
    panel.by.setCurrentIndex(panel.by.findData(name))
    panel.by.activated.emit(panel.by.currentIndex())
    panel.draw(panel.workspace.view)


def column(panel: StepSummaryPanel, key: str) -> list[object]:
    return [panel.tokens.table.value(n, KEYS.index(key)) for n in range(panel.tokens.table.rowCount())]


@pytest.mark.parametrize("name", CONTRIBUTIONS)
def test_the_tokens_are_those_with_the_largest_contributions(panel: StepSummaryPanel, name: str) -> None:
    show(panel, DATA / "grpo")
    rank_by(panel, name)
    view = panel.workspace.view.step
    assert view.step is not None and view.terms is not None and view.gradient is not None
    values = CONTRIBUTIONS[name].of(view.step, view.terms, view.gradient)
    if values is None:
        assert panel.tokens_sentence.text() == CONTRIBUTIONS[name].missing and panel.tokens.isHidden()
        return
    largest = np.sort(np.abs(values[view.step.mask]))[::-1][:10]
    assert np.abs(np.array(column(panel, "value"), dtype=float)) == pytest.approx(largest)
    places = zip(column(panel, "row"), column(panel, "token"), column(panel, "value"), strict=True)
    assert all(values[int(row) - 1, int(token) - 1] == value for row, token, value in places)  # type: ignore[call-overload]
    assert f"of the {CONTRIBUTIONS[name].title} lies in 10" in panel.tokens_sentence.text()


def test_a_group_without_a_signal_stands_first_and_is_the_way_to_its_completions(panel: StepSummaryPanel) -> None:
    show(panel, DISEASED / "kl_explodes")
    assert panel.groups_sentence.text() == "1 of 2 groups give no signal."
    assert panel.groups.table.value(0, GROUP_KEYS.index("signal")) == "none"
    assert panel.groups.table.value(1, GROUP_KEYS.index("signal")) == ""
    step, dead = panel.workspace.view.step.step, panel.workspace.view.step.dead
    assert step is not None and dead is not None
    asked = list[tuple[str, int | None]]()
    panel.panel_wanted.connect(lambda wanted: asked.append((wanted, panel.workspace.selection.row)))
    panel.groups.selected.emit(0)
    ((wanted, row),) = asked
    assert wanted == "completions"
    assert row is not None and dead[step.group[row]]


def test_a_source_of_texts_has_groups_and_says_why_it_has_no_tokens(panel: StepSummaryPanel) -> None:
    show(panel, SOURCES / "trl")
    assert panel.groups.table.rowCount() == 2 and panel.tokens.isHidden()
    assert panel.tokens_sentence.text() == panel.workspace.view.run.why_no_step != ""


def test_where_no_token_is_pushed_a_sentence_stands_alone(panel: StepSummaryPanel) -> None:
    show(panel, DISEASED / "reward_constant")
    assert panel.tokens.isHidden() and panel.tokens_sentence.text().startswith("None of")
    assert panel.groups_sentence.text() == "2 of 2 groups give no signal."


def test_without_a_reference_there_is_no_kl(panel: StepSummaryPanel) -> None:
    show(panel, DISEASED / "ever_longer")
    rank_by(panel, "kl")
    assert panel.tokens.isHidden() and "no KL" in panel.tokens_sentence.text()


def test_before_an_update_it_says_what_will_be_there(panel: StepSummaryPanel) -> None:
    panel.workspace.activate(bandit())
    panel.draw(panel.workspace.view)
    assert panel.empty.isVisibleTo(panel) and "Press Step" in panel.empty.text()


def test_its_rows_lead_to_the_token_the_completion_and_another_loss(driver: Driver) -> None:
    program = driver.program
    program.runs.open_path(DATA / "grpo")
    driver.qtbot.waitUntil(lambda: isinstance(program.workspace.run, RecordedRun))
    driver.rest()
    panel = program.window.panels.of(STEP_SUMMARY)
    for act, spec in (
        (lambda: panel.tokens.selected.emit(2), TOKEN_INSPECTOR),
        (lambda: panel.groups.selected.emit(1), COMPLETIONS),
        (panel.other.click, WHAT_IF),
    ):
        act()
        driver.settle()
        assert program.window.panels.of(spec).seen
    panel.tokens.selected.emit(2)
    driver.settle()
    selection = program.workspace.selection
    assert (selection.row, selection.token) == (int(column(panel, "row")[2]) - 1, int(column(panel, "token")[2]) - 1)  # type: ignore[call-overload]
    assert panel.tokens.currentIndex().row() == 2, "what is selected is marked"


def test_an_update_of_our_own_has_one_too(driver: Driver) -> None:
    driver.run(3)
    driver.program.window.show_panel(STEP_SUMMARY)
    driver.settle()
    panel = driver.program.window.panels.of(STEP_SUMMARY)
    assert panel.groups.table.rowCount() == 1 and panel.tokens.table.rowCount() > 0
    driver.program.workspace.move_to(0)
    driver.settle()
    assert panel.empty.isVisibleTo(panel)
