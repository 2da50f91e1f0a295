"""Training history: the content of its table, series that stay within their axes, and the trials and repeats shown
with it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.experiments.repeats import COUNT, FEWEST
from app.panel_registry import POLICY_BARS, TRAINING_HISTORY
from app.panels.history_chart import NATS, OTHER, UNIT, HistoryChart
from app.panels.training_history import PLOT_HEIGHT, TrainingHistoryPanel
from app.panels.trials_row import COLUMNS
from app.plotting.items import GhostLines
from grpo_core.experiments.repeats import SERIES
from grpo_core.metrics import METRICS
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window("training_history")


@pytest.fixture
def panel(driver: Driver) -> TrainingHistoryPanel:
    return driver.program.window.panels.of(TRAINING_HISTORY)


def test_a_bandits_table_has_no_columns_of_a_language_model(driver: Driver, panel: TrainingHistoryPanel) -> None:
    driver.run(4)
    for box in panel.choice.boxes.values():
        box.setChecked(True)
    panel.choice.table.click()
    driver.settle()
    assert len(panel.twins) == 3
    keys = [column.key for twin in panel.twins for column in twin.table.table.columns if column.key != "x"]
    assert "reward_mean" in keys
    assert not [key for key in keys if METRICS[key].language]


def test_every_series_with_a_short_name_has_one_axis() -> None:
    assert sorted((*UNIT, *NATS, *OTHER)) == sorted(name for name, metric in METRICS.items() if metric.short)


def test_the_plot_of_the_other_series_is_made_when_one_of_them_is_wanted_and_is_the_last(
    driver: Driver, panel: TrainingHistoryPanel
) -> None:
    driver.run(4)
    panel.choice.table.click()
    assert [chart.names for chart in panel.charts] == [UNIT, NATS]
    panel.choice.boxes["loss"].setChecked(True)
    driver.settle()
    assert [chart.names for chart in panel.charts] == [UNIT, NATS, OTHER]
    assert all(twin.shows_table for twin in panel.twins), "a table, as the others are"
    panel.choice.table.click()
    driver.settle()
    other = panel.charts[-1]
    assert [curve.key for curve in other.curves if curve.isVisible()] == ["loss"] and len(other.curves[1].series) == 4
    places = [twin.mapTo(panel, twin.rect().center()).toTuple() for twin in panel.twins]
    assert places == sorted(places) and len(set(places)) == 3


def test_rewards_above_one_fit_the_axis(driver: Driver, panel: TrainingHistoryPanel) -> None:
    """For example, if a bonus is added to the reward of a right answer."""
    driver.run(4)
    unit = panel.charts[0]
    assert (unit.frame.y.low, unit.frame.y.high) == (0, 1)
    run = driver.shown_run
    last = run.step(run.head)
    assert last is not None
    paid = {name: run.series[name].values[-1:] for name in METRICS} | {"reward_mean": np.array([1.45])}
    run.extend(paid, run.head + 1)
    run.keep(dataclasses.replace(last, step=run.head))
    driver.program.workspace.head_moved()
    driver.settle()
    low, high = unit.view_box.viewRange()[1]
    assert low <= 0 and high >= 1.45


def test_the_choice_of_series_is_seen_before_the_first_update(driver: Driver, panel: TrainingHistoryPanel) -> None:
    boxes = [box for box in panel.choice.boxes.values() if not box.isHidden()]
    assert boxes and not any(box.visibleRegion().isEmpty() for box in boxes)


def test_before_the_first_update_one_plot_says_so_and_the_other_has_no_axes(
    driver: Driver, panel: TrainingHistoryPanel
) -> None:
    driver.settle()
    colours = [len(colours_of(chart)) for chart in panel.charts]
    assert colours[0] > 1 == colours[1]
    driver.run(1)
    assert len(colours_of(panel.charts[1])) > 1


def colours_of(chart: HistoryChart) -> set[int]:
    picture = chart.viewport().grab().toImage()
    return {picture.pixel(x, y) for x in range(picture.width()) for y in range(picture.height())}


# -- trials ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def third(driver: Driver) -> Driver:
    """The last of three runs, of 12, 6 and 3 updates, with seeds 7, 8 and 9."""
    driver.run(12)
    driver.program.runs.new_seed()
    driver.run(6)
    driver.program.runs.new_seed()
    driver.run(3)
    return driver


def drawn(ghost: GhostLines) -> np.ndarray:
    """Return the drawn heights, without the gaps between runs."""
    y = ghost.getData()[1]
    return np.empty(0) if y is None else y[np.isfinite(y)]


def test_earlier_runs_are_drawn_whole_behind_the_run_and_the_axis_holds_them(
    third: Driver, panel: TrainingHistoryPanel
) -> None:
    unit = panel.charts[0]
    before = third.program.workspace.runs[:2]
    for name in ("reward_mean", "max_prob"):
        expected = np.concatenate([run.series[name].values for run in before])
        assert np.array_equal(drawn(unit.ghosts[name]), expected)
    assert unit.view_box.viewRange()[0][1] >= 12
    assert len(drawn(unit.ghosts["clip_fraction"])) == 0, "a series that is not shown has no ghosts"
    assert all(f"seed {seed}" in panel.accessibleDescription() for seed in (7, 8))


def test_a_click_or_space_on_a_chip_hides_its_lines_and_return_opens_its_run(
    third: Driver, panel: TrainingHistoryPanel
) -> None:
    workspace = third.program.workspace
    newest, oldest = panel.trials.chips[0], panel.trials.chips[1]
    assert newest.text().startswith("seed 8") and oldest.text().startswith("seed 7")
    newest.click()
    third.settle()
    assert len(drawn(panel.charts[0].ghosts["max_prob"])) == 12 and not newest.isChecked()
    newest.setFocus()
    QTest.keyClick(newest, Qt.Key.Key_Space)
    third.settle()
    assert len(drawn(panel.charts[0].ghosts["max_prob"])) == 18 and newest.isChecked()
    QTest.keyClick(oldest, Qt.Key.Key_Return)
    third.settle()
    assert workspace.run is workspace.runs[0]
    assert [trial.seed for trial in workspace.view.trials] == [8, 9]


def test_a_double_click_opens_a_run_and_hides_none(third: Driver, panel: TrainingHistoryPanel) -> None:
    workspace = third.program.workspace
    chip = panel.trials.chips[1]
    QTest.mouseClick(chip, Qt.MouseButton.LeftButton)
    QTest.mouseDClick(chip, Qt.MouseButton.LeftButton)
    third.settle()
    assert workspace.run is workspace.runs[0] and all(trial.shown for trial in workspace.view.trials)


def test_the_trial_under_the_keyboard_stands_out(third: Driver, panel: TrainingHistoryPanel) -> None:
    ghost = panel.charts[0].ghosts["max_prob"]
    chip = panel.trials.chips[1]
    chip.pointed.emit(chip.subject)
    third.settle()
    y = ghost.marked.getData()[1]
    assert np.array_equal(y[np.isfinite(y)], third.program.workspace.runs[0].series["max_prob"].values)
    chip.pointed.emit(None)
    third.settle()
    assert len(ghost.marked.getData()[0]) == 0


def test_the_twin_table_has_a_row_for_each_trial_and_opens_it(third: Driver, panel: TrainingHistoryPanel) -> None:
    workspace = third.program.workspace
    panel.choice.table.click()
    third.settle()
    model = panel.trials_table.table
    place = {column.key: n for n, column in enumerate(COLUMNS)}
    assert [model.value(row, place["seed"]) for row in range(3)] == [9, 8, 7]
    for row, run in enumerate(reversed(workspace.runs)):
        assert model.value(row, place["updates"]) == run.head
        assert model.value(row, place["kl"]) == run.series["kl"].last
    panel.trials_table.activated_cell.emit(2, "seed")
    third.settle()
    assert workspace.run is workspace.runs[0]


def test_a_run_whose_file_is_gone_is_not_opened_but_leaves(third: Driver, panel: TrainingHistoryPanel) -> None:
    workspace = third.program.workspace
    gone, shown = workspace.runs[0], workspace.run
    Path(gone.path).unlink()
    QTest.keyClick(panel.trials.chips[1], Qt.Key.Key_Return)
    assert workspace.run is shown and gone.path.name in third.messages[-1]
    third.program.runs.new_seed()
    third.settle()
    assert gone not in [trial.run for trial in workspace.view.trials]


def test_the_ends_of_earlier_runs_stand_as_outlines_in_the_policy(third: Driver) -> None:
    workspace, bars = third.program.workspace, third.program.window.panels.of(POLICY_BARS)
    lane = next(lane for lane in bars.plot.picture.lanes if lane.ghosts)
    for run, outline in zip(workspace.runs, lane.ghosts, strict=False):
        step = run.step(run.head)
        assert step is not None
        logp = step.distribution(step.passes)
        assert logp is not None and np.array_equal(outline, np.exp(logp)[0])
    columns, rows = bars.plot.table()
    ends = [n for n, column in enumerate(columns) if column.title.startswith("end of seed")]
    assert [[row[n] for row in rows] for n in ends] == [outline.tolist() for outline in lane.ghosts]
    assert bars.plot.ranges["policy"][1] < 0.5, "the axis is that of the run itself"


# -- repeats -----------------------------------------------------------------------------------------------------------


def test_repeats_fill_a_band_whose_runs_repeat_bit_for_bit(driver: Driver, panel: TrainingHistoryPanel) -> None:
    driver.run(3)
    panel.trials.button.click()
    driver.qtbot.waitUntil(lambda: panel.repeats.results is not None and not panel.repeats.busy)
    driver.settle()
    results = panel.repeats.results
    assert results is not None and results.complete and results.wanted == FEWEST and len(results.seeds) == COUNT
    band = panel.charts[0].bands[0]["max_prob"]
    values = results.series["max_prob"]
    assert band.isVisible() and band.extent() == (values.min(), values.max())
    past = np.sort([np.argmax(values[:, seed] > 0.5) + 1 for seed in range(COUNT) if (values[:, seed] > 0.5).any()])
    sentence = panel.trials.sentence.text()
    assert f"{past[(len(past) - 1) // 2]}, range {past[0]} to {past[-1]}" in sentence
    assert sentence in panel.accessibleDescription()
    panel.trials_table.activated_cell.emit(1 + 4, "seed")
    driver.run(5)
    run = driver.shown_run
    assert run.origin.settings.seed == results.seeds[4]
    for name in SERIES:
        assert np.allclose(run.series[name].values[:5], results.series[name][:5, 4], rtol=1e-12, atol=1e-12)


def test_the_chip_of_the_repeats_hides_their_band(driver: Driver, panel: TrainingHistoryPanel) -> None:
    panel.repeat()
    driver.qtbot.waitUntil(lambda: panel.repeats.results is not None and not panel.repeats.busy)
    driver.settle()
    band = panel.charts[0].bands[0]["max_prob"]
    assert np.isfinite(band.extent()).all()
    panel.trials.repeats.click()
    driver.settle()
    assert not np.isfinite(band.extent()).any() and panel.trials.sentence.isHidden()


def test_repeats_of_a_language_model_are_queued(
    language: Driver, panel: TrainingHistoryPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = language.program
    queued = []
    monkeypatch.setattr(program.background_runs.background, "start", lambda folder, queue: queued.append(queue))
    seed = program.workspace.view.next_settings.seed
    panel.trials.button.click()
    (queue,) = queued
    assert [run.settings.seed for run in queue.runs] == list(range(seed + 1, seed + 1 + COUNT))
    assert queue.updates == 6 and panel.repeats.results is None


# -- room --------------------------------------------------------------------------------------------------------------


@pytest.mark.quick_cases("1366-768-1.0", "1280-680-1.0")
@pytest.mark.parametrize(("width", "height", "scale"), [(1366, 768, 1.0), (1366, 768, 1.25), (1280, 680, 1.0)])
def test_the_trials_stand_above_the_plots_only_where_these_keep_their_height(
    driver: Driver, panel: TrainingHistoryPanel, width: int, height: int, scale: float
) -> None:
    driver.run(3)
    driver.program.look.set("light", scale)
    driver.program.window.resize(width, height)
    driver.program.layouts.reset()
    chart = panel.charts[0]
    roomy = scale == 1.0
    driver.qtbot.waitUntil(lambda: chart.height() >= 80 * scale and panel.trials.isVisible() == roomy)
    driver.settle()
    assert panel.trials.isVisible() == roomy
    assert not roomy or chart.height() >= PLOT_HEIGHT
    if height == 768:
        least = 110 if scale == 1.0 else 80
        assert all(one.view_box.height() >= least for one in panel.charts), "the curves themselves have room"
    assert driver.program.actions["repeat"].isEnabled(), "what the row's button does is in the menu too"


def test_the_axes_of_plots_beside_each_other_lie_at_one_height(driver: Driver, panel: TrainingHistoryPanel) -> None:
    driver.run(13)
    driver.program.window.show_layout("Compare")
    driver.program.window.show_panel(TRAINING_HISTORY)
    driver.settle()
    bottoms = {chart.view_box.mapRectToScene(chart.view_box.boundingRect()).bottom() for chart in panel.charts}
    assert len(panel.charts) == 2 and len(bottoms) == 1


def test_plots_above_each_other_begin_at_one_place_and_the_lowest_counts_the_updates(
    driver: Driver, panel: TrainingHistoryPanel
) -> None:
    driver.run(13)
    upper, lower = (chart.frame for chart in panel.charts)
    boxes = [chart.view_box for chart in panel.charts]
    driver.settle()
    assert boxes[0].geometry().left() == boxes[1].geometry().left()
    assert upper.bare and not lower.bare
    assert abs(boxes[0].height() - boxes[1].height()) <= 2, "the room is shared out between the curves"


def test_what_is_zoomed_in_one_plot_is_zoomed_in_the_others(driver: Driver, panel: TrainingHistoryPanel) -> None:
    driver.run(40)
    charts = panel.charts
    whole = charts[0].view_box.viewRange()[0]
    charts[0].zoom(0.5)
    driver.settle()
    parts = [chart.view_box.viewRange()[0] for chart in charts]
    assert parts[0] == parts[1] != whole
    charts[1].reset_view()
    driver.settle()
    assert [chart.view_box.viewRange()[0] for chart in charts] == [whole, whole]


def test_labels_that_a_run_cannot_have_take_no_room_from_its_curves(
    driver: Driver, panel: TrainingHistoryPanel
) -> None:
    driver.run(3)
    driver.program.window.show_layout("Compare")  # adjacent plots keep no space for each other's labels
    driver.program.window.show_panel(TRAINING_HISTORY)
    driver.settle()
    chart = panel.charts[0]
    labels = [chart.words.width(METRICS[name].short) for name in chart.possible]
    assert "accuracy_sampled" not in chart.possible
    assert max(labels) <= chart.margin <= max(labels) + 12
    chart.offer(chart.names)
    assert chart.margin >= chart.words.width(METRICS["accuracy_sampled"].short)
