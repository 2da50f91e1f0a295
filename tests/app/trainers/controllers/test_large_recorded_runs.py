"""Recorded runs with large updates, with many updates, and in one large file do not block the window."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from app.panel_registry import WHAT_IF
from app.panels.what_if.panel import COMPUTING
from app.panels.what_if.question import WhatIfQuestion
from app.trainers.controllers import recorded_follower
from app.trainers.panel_rows import COMPLETIONS
from app.trainers.recorded_run import RecordedRun
from app.workspace.cursor import Stage
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.recorded_series import numbers
from tests.app.conftest import Driver
from tests.app.trainers.controllers.test_recorded_runs import opened, shown
from tests.core.trainers.importers.test_line_index import episode, written
from tests.core.trainers.trace_files import DATA

pytestmark = pytest.mark.one_window


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.workspace.prepared.LARGE_TOKENS", 1)
    monkeypatch.setattr("app.panels.what_if.panel.LARGE_TOKENS", 1)


@pytest.mark.usefixtures("everything_is_large")
def test_the_cursor_goes_to_a_large_update_when_it_was_read(driver: Driver) -> None:
    run, workspace = opened(driver, DATA / "entbonus"), driver.program.workspace
    assert run.large
    ready = workspace.view.step.step
    assert ready is not None and run.prepared(4) is not None, "its last update was read before it was shown"
    workspace.move_to(1)
    workspace.move_to(2)
    assert workspace.cursor.step == 4 and workspace.view.step.step is ready, "what is shown stays meanwhile"
    driver.qtbot.waitUntil(lambda: workspace.cursor.step == 2)
    assert run.prepared(2) is not None and workspace.approach.goal is None
    known = run.prepared(2)
    assert known is not None and workspace.view.step.numbers is known.evaluated
    for key, value in numbers(open_source(DATA / "entbonus"), 2).items():
        assert run.numbers(2)[key] == pytest.approx(value, nan_ok=True)
    assert not any("report" in message for message in driver.messages)


@pytest.mark.usefixtures("everything_is_large")
def test_of_large_updates_that_are_not_both_kept_the_one_shown_before_is_freed(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("trainers.recorded_run.KEPT_PREPARED", "workspace.run_handle.KEPT_TOKENS"):
        monkeypatch.setattr(f"app.{limit}", 1)
    monkeypatch.setattr("app.workspace.step_view.MOST_TOKENS", 1)
    run, workspace = opened(driver, DATA / "grpo"), driver.program.workspace
    first = weakref.ref(workspace.view.step.step)
    workspace.move_to(1)
    driver.qtbot.waitUntil(lambda: workspace.cursor.step == 1)
    driver.settle()
    gc.collect()
    assert first() is None, "no panel in sight or behind a tab holds the arrays of the update before"
    assert run.prepared(1) is not None and run.prepared(2) is None


@pytest.mark.usefixtures("everything_is_large")
def test_another_pass_of_a_large_update_is_evaluated_first(driver: Driver) -> None:
    run, workspace = opened(driver, DATA / "grpo"), driver.program.workspace
    last = run.prepared(2)
    assert last is not None and set(last.reasons) == {1}
    workspace.show_stage(Stage.UPDATE, 0)
    driver.qtbot.waitUntil(lambda: workspace.view.step.passed == 0)
    both = run.prepared(2)
    assert both is not None and set(both.reasons) == {0, 1} and both.evaluated is last.evaluated


@pytest.mark.usefixtures("everything_is_large")
def test_what_if_of_a_large_update_is_that_of_any_other(driver: Driver) -> None:
    opened(driver, DATA / "grpo")
    workspace = driver.program.workspace
    driver.program.window.show_panel(WHAT_IF)
    panel = driver.program.window.panels.of(WHAT_IF)
    driver.qtbot.waitUntil(lambda: panel.picture is not None or panel.batch.problem.text() not in ("", COMPUTING))
    assert panel.picture is not None
    step = workspace.view.step.step
    assert step is not None
    plain = WhatIfQuestion(workspace).picture(workspace.view, step, workspace.view.step.passed)
    assert [row.other for row in panel.picture.rows] == [row.other for row in plain.rows]
    panel.question.choose("Dr. GRPO")
    panel.redraw()
    driver.qtbot.waitUntil(lambda: panel.picture is not None and panel.picture.rows != plain.rows)


def test_series_may_be_there_at_both_ends_first() -> None:
    source = open_source(DATA / "entbonus")
    rows = [numbers(source, position) for position in range(1, 5)]
    run, plain = RecordedRun(source), RecordedRun(source)
    plain.add_numbers(rows)
    run.add_numbers(rows[:1], 0)
    run.add_numbers(rows[3:], 3)
    loss = run.series["loss"].values
    assert run.computed == 1 and run.is_computed(4) and not run.is_computed(2)
    assert np.isfinite(loss[[0, 3]]).all() and np.isnan(loss[1:3]).all()
    run.add_numbers(rows[1:3], 1)
    assert run.computed == 4
    for name, series in plain.series.items():
        assert np.array_equal(run.series[name].values, series.values, equal_nan=True), name
        assert np.array_equal(run.series[name].window(0, 4, 2)[1], series.window(0, 4, 2)[1], equal_nan=True)


def test_a_long_run_is_computed_from_both_ends_and_says_how_far_it_is(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FIRST", 1), ("LAST", 1), ("IN_THREAD", 0), ("WORTH_SAYING", 1)):
        monkeypatch.setattr(recorded_follower, name, value)
    assert recorded_follower.stretches(0, 4) == [(0, 1), (3, 4), (1, 3)]
    run = opened(driver, DATA / "entbonus")
    driver.qtbot.waitUntil(lambda: not driver.program.part("trainers").recorded_runs.busy)
    assert run.computed == 4
    assert not driver.program.messages.isVisible() or "steps …" not in " ".join(driver.messages)


def test_the_last_step_of_a_large_file_stays_in_sight_while_the_others_appear(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grpo_core.trainers.importers.verifiers.TAIL", 12 * len(episode(1)))
    path = written(tmp_path / "traces.jsonl", 9)
    driver.program.runs.open_path(path)
    workspace = driver.program.workspace

    def whole() -> bool:
        run = shown(workspace)
        return isinstance(run, RecordedRun) and not run.source.partial and run.computed == 9

    driver.qtbot.waitUntil(whole)
    assert workspace.cursor.step == 9 and len(workspace.runs) == len({run.path for run in workspace.runs})


def test_a_last_step_that_was_half_written_is_read_again(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(episode(1) + episode(2), "utf-8")
    run, workspace = opened(driver, path), driver.program.workspace
    driver.program.window.show_panel(COMPLETIONS)
    driver.settle()
    table = driver.program.window.panels["completions"].table.table  # type: ignore[attr-defined]
    assert table.rowCount() == 1
    with path.open("a", encoding="utf-8") as file:
        file.write(episode(2) + episode(2))
    driver.program.part("trainers").recorded_runs.followers[run.id].look()
    driver.qtbot.waitUntil(lambda: table.rowCount() == 3)
    driver.qtbot.waitUntil(lambda: run.computed == run.head == 2)
    assert workspace.cursor.step == 2
