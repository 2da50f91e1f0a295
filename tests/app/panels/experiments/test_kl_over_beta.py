"""KL over β as a sweep: its results arrive, it is dragged, compared and cancelled, and its runs can be opened and
repeated.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.experiments.kl_over_beta import KlOverBetaPanel
from app.experiments.sweep.pictures import OPTIMUM
from app.experiments.sweep.plan import BETA, LANGUAGE_GRIDS, Swept
from app.experiments.sweep.results import SweepResults, row_line
from app.experiments.sweep.views import FINAL, FRONTIER, HEAT, SIDE, TRAINING
from app.panel_registry import KL_OVER_BETA
from app.plotting.line_data import PointSet
from app.plotting.numbers import shown
from grpo_core.claims.numbers import written
from grpo_core.config import language_settings
from grpo_core.experiments.sweep import ESTIMATORS, tilt_measures
from grpo_core.foreign.readers import Readers
from grpo_core.lm.engines import numpy_policy
from grpo_core.lm.learner import LanguageLearner
from grpo_core.metrics import metrics
from grpo_core.queue.queue import Queue, begin, planned
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.recorded_series import numbers
from grpo_core.trainers.trl_sweep import TRACES, trace_of
from tests.app.conftest import Driver, make, take_down
from tests.app.panels.conftest import Front
from tests.core.lm_steps import lm_run
from tests.core.trainers.trace_files import DATA

pytestmark = pytest.mark.one_window

FEW = Swept(path=BETA, values=(0.0, 0.1, 0.4, 1.0))


@pytest.fixture
def panel(driver: Driver, front: Front) -> KlOverBetaPanel:
    """The panel in front, after a sweep of few seeds and updates."""
    one = driver.program.window.panels.of(KL_OVER_BETA)
    one.choices.choice = type(one.choices.choice)(over=FEW, seeds=16, updates=30)
    one.choices.show_choice()
    front(KL_OVER_BETA)
    rest(driver, one)
    return one


def rest(driver: Driver, panel: KlOverBetaPanel) -> None:
    """Wait until nothing is being computed, then draw."""
    driver.qtbot.waitUntil(lambda: not panel.busy)
    driver.settle()


def results_of(panel: KlOverBetaPanel) -> SweepResults:
    assert panel.controller.results is not None
    return panel.controller.results


def show(driver: Driver, panel: KlOverBetaPanel, view: str) -> None:
    """Choose a view as a user does."""
    panel.choices.view.setCurrentIndex(panel.choices.view.findData(view))
    panel.choices.view.activated.emit(panel.choices.view.currentIndex())
    driver.settle()


def at(plot: object, x: float, y: float) -> QPointF:
    """Return the position of a data point in the plot's viewport."""
    return QPointF(plot.mapFromScene(plot.view_box.mapViewToScene(QPointF(x, y))))  # type: ignore[attr-defined]


def own_points(panel: KlOverBetaPanel) -> PointSet:
    """Return the updates of the displayed run in the picture of the KL."""
    return next(points for points in panel.views.kl.picture.points if points.name == "own")


def test_a_sweep_comes_by_itself_and_kl_falls_with_beta(panel: KlOverBetaPanel) -> None:
    results = results_of(panel)
    assert results.complete
    kl, reward = results.final("kl"), results.final("reward")
    assert (np.diff(kl.middle) < 0).all() and (kl.low <= kl.middle).all() and (kl.middle <= kl.high).all()
    assert np.array_equal(panel.views.kl.lines[row_line(0)].y, kl.middle)
    assert np.array_equal(panel.views.reward.lines[row_line(0)].y, reward.middle)
    assert "β 0 KL is" in panel.accessibleDescription()
    solid = {name: line.style is Qt.PenStyle.SolidLine for name, line in panel.views.kl.lines.items()}
    assert solid == {row_line(0): True, OPTIMUM: False}, "only theory is dashed"


def test_the_result_stands_above_the_picture_in_numbers_of_the_runs(panel: KlOverBetaPanel) -> None:
    results = results_of(panel)
    reward = np.array([results.done[place, 0].measures["reward"][-1].mean() for place in range(len(FEW.values))])
    kl = results.final("kl").middle
    sentence = panel.headline.text()
    assert panel.headline.isVisible() and sentence in panel.accessibleDescription()
    best, worst = FEW.values[int(reward.argmax())], FEW.values[int(reward.argmin())]
    assert f"highest at β {best:g} ({reward.max():.3f}" in sentence
    assert f"lowest at β {worst:g} ({shown(reward.min())})" in sentence
    assert f"falls from {shown(kl[0])} to {shown(kl[-1])} nats" in sentence


def test_the_updates_of_the_run_lie_over_the_sweep_and_every_view_has_its_table(
    driver: Driver, panel: KlOverBetaPanel
) -> None:
    driver.run(7)
    x, y = own_points(panel).x, own_points(panel).y
    run = driver.shown_run
    assert np.array_equal(y, run.series["kl"].values)
    assert np.allclose(x, FEW.at([0.04])[0]) and 0 < x[0] < 1
    assert panel.views.training.lines["own"].x.tolist() == [1, 2, 3, 4, 5, 6, 7]
    for view, plot in ((FINAL, panel.views.kl), (FRONTIER, panel.views.frontier), (TRAINING, panel.views.training)):
        show(driver, panel, view)
        columns, rows = plot.table()
        assert len(rows) == (31 if view == TRAINING else 4)
        assert all(len(row) == len(columns) for row in rows)
    panel.choices.table.click()
    driver.settle()
    assert all(twin.shows_table for twin in panel.views.twins.values())


@pytest.mark.quick_cases("click")
@pytest.mark.parametrize("way", ["click", "key"])
def test_a_point_opens_a_run_that_repeats_bit_for_bit(driver: Driver, panel: KlOverBetaPanel, way: str) -> None:
    y = results_of(panel).final("kl").middle[2]
    spot = at(panel.views.kl, 2, y).toPoint()
    QTest.mouseClick(panel.views.kl.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    rest(driver, panel)
    runs = panel.selection.runs
    assert runs is not None and runs.settings.objective.beta == 0.4
    place = runs.median("kl")
    if way == "click":
        panel.run.open.click()
    else:
        panel.views.kl.setFocus()
        QTest.keyClick(panel.views.kl, Qt.Key.Key_Return)
    driver.rest()
    run = driver.shown_run
    assert run.head == 30 and run.origin.settings == runs.run(place)
    last = run.step(30)
    assert last is not None
    policy = last.distribution(last.passes)
    assert policy is not None and np.array_equal(np.exp(policy), runs.policy[place])
    assert any(f"Seed {runs.seeds[place]}" in message for message in driver.messages)


def test_dragging_trains_at_the_value_under_the_hand(driver: Driver, panel: KlOverBetaPanel) -> None:
    panel.choices.slider.setValue(panel.choices.slider.maximum() * 5 // 6)  # half way from 0.4 to 1
    wanted = panel.selection.value
    assert wanted == pytest.approx(0.7)
    rest(driver, panel)
    runs = panel.selection.runs
    assert runs is not None and runs.settings.objective.beta == wanted
    assert np.array_equal(panel.views.training.lines["chosen"].y, np.median(runs.measures["kl"], axis=-1))
    assert "0.7" in panel.run.says.text() and "0.7" in panel.choices.value_label.text()
    panel.run.seed.setCurrentIndex(6)
    with driver.qtbot.waitSignal(panel.run_wanted) as told:
        panel.run.open.click()
    assert told.args[0] == runs.run(5)  # any seed opens, at any value
    QTest.mousePress(panel.views.kl.viewport(), Qt.MouseButton.LeftButton, pos=at(panel.views.kl, 2.5, 0.1).toPoint())
    for x in (2.0, 1.5, 0.5):
        QTest.mouseMove(panel.views.kl.viewport(), at(panel.views.kl, x, 0.1).toPoint())
    QTest.mouseRelease(panel.views.kl.viewport(), Qt.MouseButton.LeftButton, pos=at(panel.views.kl, 0.5, 0.1).toPoint())
    rest(driver, panel)
    assert panel.selection.runs is not None
    assert panel.selection.runs.settings.objective.beta == panel.selection.value == pytest.approx(0.05, abs=0.01)


def test_the_arrows_go_from_value_to_value(driver: Driver, panel: KlOverBetaPanel) -> None:
    panel.selection.put(1.0, 0)
    panel.views.kl.setFocus()
    QTest.keyClick(panel.views.kl, Qt.Key.Key_Right)
    assert panel.selection.value == 0.4
    QTest.keyClick(panel.views.kl, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert panel.selection.value == pytest.approx(0.37)
    QTest.keyClick(panel.views.kl, Qt.Key.Key_End)
    assert panel.selection.value == 1.0
    rest(driver, panel)


def test_what_theory_knows_is_drawn_and_what_not_is_said(driver: Driver, panel: KlOverBetaPanel) -> None:
    assert not len(panel.views.kl.lines[OPTIMUM].x)
    assert "No exact optimum: GRPO divides by the std." in panel.run.says.text()
    panel.run.known.click()
    rest(driver, panel)
    results = results_of(panel)
    assert results.has_optimum()
    assert "after" in panel.run.says.text() and "nats from it" in panel.run.says.text()
    best, sweep = results.optimum(), results.sweep
    wanted = tilt_measures(sweep.at(sweep.over.values[3]), 1.0)
    assert best["kl"][-1] == wanted["kl"] and best["reward"][-1] == wanted["reward"]
    assert np.array_equal(panel.views.kl.lines[OPTIMUM].y, best["kl"])
    panel.run.back.click()
    rest(driver, panel)
    assert not results_of(panel).has_optimum()


def test_estimators_are_real_sweeps_side_by_side(driver: Driver, panel: KlOverBetaPanel) -> None:
    panel.choices.estimators.click()
    rest(driver, panel)
    results = results_of(panel)
    assert results.sweep.rows == tuple(ESTIMATORS)
    for row, name in enumerate(ESTIMATORS):
        point = results.done[3, row].settings
        assert {path: point.get(path) for path in ESTIMATORS[name]} == ESTIMATORS[name]
    ends = {name: results.final("kl", row).middle[-1] for row, name in enumerate(ESTIMATORS)}
    assert ends["k1"] == max(ends.values())  # its gradient is noise: nothing pulls back
    assert panel.selection.row == list(ESTIMATORS).index("k3")
    show(driver, panel, SIDE)
    assert len([plot for plot in panel.views.multiples if plot.isVisible()]) == 5
    for row, plot in enumerate(panel.views.multiples):
        assert np.array_equal(plot.lines[row_line(row)].y, results.final("kl", row).middle)
    panel.choices.estimators.click()
    rest(driver, panel)
    assert panel.choices.view_wanted == FINAL
    assert panel.controller.results is not None and panel.controller.results.sweep.across is None


def test_two_settings_make_a_table_of_numbers(driver: Driver, panel: KlOverBetaPanel) -> None:
    panel.choices.choose(across=Swept(path="optimizer.learning_rate", values=(0.03, 0.3)))
    rest(driver, panel)
    show(driver, panel, HEAT)
    results, heat = results_of(panel), panel.views.heat
    assert heat.values.shape == (2, 4)
    assert heat.values[1, 2] == results.final("kl", 1).middle[2]
    assert heat.tsv().splitlines()[2].startswith("α 0.3\t")
    heat.setFocus()
    heat.setCurrentIndex(heat.model().index(0, 3))
    rest(driver, panel)
    assert panel.selection.runs is not None
    chosen = panel.selection.runs.settings
    assert (chosen.objective.beta, chosen.optimizer.learning_rate) == (1.0, 0.03)


@pytest.mark.long
def test_cancelling_keeps_what_was_done(driver: Driver, panel: KlOverBetaPanel) -> None:
    panel.choices.choose(over=Swept(path="learner.group_size", values=(2, 3, 4096)), updates=1000)
    driver.qtbot.waitUntil(lambda: panel.controller.coming is not None and panel.controller.coming.count == 1)
    assert panel.choices.sweep.text() == "Cancel"
    panel.choices.sweep.click()
    assert not panel.controller.busy
    results = results_of(panel)
    assert 1 <= len(results.done) < 3
    rest(driver, panel)
    assert "Incomplete" in panel.run.says.text()
    assert np.isfinite(results.final("kl").middle[0]) and np.isnan(results.final("kl").middle[2])


def test_a_sweep_of_other_settings_is_dimmed_until_it_is_swept_again(driver: Driver, panel: KlOverBetaPanel) -> None:
    driver.program.workspace.editing.edit({"objective.beta": 0.3, "seed": 5}, "Change what is swept")
    driver.settle()
    assert panel.views.kl.frame.opacity() == 1
    driver.program.workspace.editing.edit({"optimizer.learning_rate": 0.1}, "Change something else")
    driver.settle()
    assert panel.views.kl.frame.opacity() < 1 and "“Learning rate”" in panel.run.says.text()
    panel.choices.sweep.click()
    rest(driver, panel)
    driver.settle()
    assert panel.views.kl.frame.opacity() == 1
    assert panel.controller.results is not None and panel.controller.results.sweep.base.optimizer.learning_rate == 0.1


def test_typed_values_are_sorted_and_kept_once_and_what_cannot_be_is_refused_in_a_sentence(
    driver: Driver, panel: KlOverBetaPanel
) -> None:
    panel.choices.setup.click()
    before = panel.controller.results
    for text, said in (("", "at least one"), ("0, -1", "objective.beta"), ("0, nan", "objective.beta"), ("a", "beta")):
        panel.choices.over_values.setText(text)
        panel.choices.over_values.editingFinished.emit()
        driver.settle()
        assert said in panel.run.says.text(), text
        assert panel.controller.results is before and not panel.controller.busy
    panel.choices.over_values.setText("1, 0.2; 0.2 0")
    panel.choices.over_values.editingFinished.emit()
    rest(driver, panel)
    assert panel.controller.results is not None and panel.controller.results.sweep.over.values == (0.0, 0.2, 1.0)


def test_the_command_sweeps_and_a_chain_of_decisions_is_refused_in_a_sentence(
    driver: Driver, panel: KlOverBetaPanel
) -> None:
    driver.program.window.docks["training_history"].raise_()
    before = panel.controller.results
    driver.program.actions["sweep"].trigger()
    driver.qtbot.waitUntil(lambda: panel.controller.results is not before and not panel.busy)
    assert panel.seen
    driver.program.runs.new_run()
    driver.program.workspace.editing.edit({"task.landscape": "chain"}, "Another task")
    panel.choices.sweep.click()
    rest(driver, panel)
    assert "choose a task of one decision" in panel.run.says.text()


def test_closing_while_a_sweep_is_computed_is_clean(qtbot: QtBot, tmp_path_factory: pytest.TempPathFactory) -> None:
    driver = make(qtbot, tmp_path_factory.mktemp("closing"))
    one = driver.program.window.panels.of(KL_OVER_BETA)
    one.choices.choice = type(one.choices.choice)(over=FEW, seeds=256, updates=10_000)
    driver.program.window.docks["kl_over_beta"].raise_()
    driver.qtbot.waitUntil(lambda: one.controller.busy)
    take_down(driver)


def test_a_language_model_is_swept_by_one_click_and_its_points_come_one_by_one(language: Driver, front: Front) -> None:
    panel = front(KL_OVER_BETA)
    assert not panel.busy and panel.controller.results is None  # training a model waits for a click
    assert "2 seeds and 60 updates" in panel.run.says.text()
    assert len(own_points(panel).x) == 6
    shown_buttons = [button for button in panel.run.findChildren(QPushButton) if button.isVisible()]
    assert shown_buttons == [panel.run.now]
    assert set(LANGUAGE_GRIDS[BETA]) <= set(panel.selection.over.values)  # the axis is that of the coming points
    panel.choices.choice = replace(panel.choices.choice, over=Swept(path=BETA, values=(0.0, 0.4, 1.0)), updates=2)
    counts = []
    panel.controller.changed.connect(
        lambda: counts.append(panel.controller.coming.count if panel.controller.coming else 0)
    )
    panel.run.now.click()
    rest(language, panel)
    assert {1, 2} <= set(counts)
    results = results_of(panel)
    assert results.complete
    for (place, _), runs in results.done.items():
        learner = LanguageLearner(runs.run(1), make_policy=numpy_policy)
        steps = [metrics(next(learner)) for _ in range(3)]
        assert runs.settings.objective.beta == (0.0, 0.4, 1.0)[place]
        assert runs.measures["kl"][:, 1].tolist() == [0.0, steps[0]["kl"], steps[1]["kl"]]
        assert runs.measures["reward"][:, 1].tolist() == [step["reward_mean"] for step in steps]
    kl = results.final("kl").middle
    assert " and ".join(written(float(kl.min()), float(kl.max()))) in panel.headline.text()
    assert len(own_points(panel).x) == 6  # the run's own updates stay beside the sweep
    panel.selection.put(2.0, 0)
    rest(language, panel)
    with language.qtbot.waitSignal(panel.run_wanted) as opened:
        panel.run.open.click()
    assert opened.args[0].objective.beta == 1.0 and opened.args[2] == 2
    assert panel.run.queue.isVisible()
    with language.qtbot.waitSignal(panel.queue_wanted) as told:
        panel.run.queue.click()
    assert told.args == [BETA, "0, 0.4, 1"]


def test_a_sweep_of_the_language_model_is_cancelled_and_that_of_the_bandit_waits_for_its_return(
    driver: Driver, panel: KlOverBetaPanel, tmp_path: Path
) -> None:
    before, program = panel.controller.results, driver.program
    lm_run(tmp_path / "arithmetic.grpo", 2)
    driver.open(tmp_path / "arithmetic.grpo")
    program.window.show_panel(KL_OVER_BETA)
    driver.settle()
    assert panel.controller.results is None and panel.choices.choice.updates == 60
    panel.choices.sweep.click()
    assert panel.busy and panel.choices.sweep.text() == "Sweep"
    driver.settle()
    assert panel.choices.sweep.text() == "Cancel"
    panel.choices.sweep.click()
    assert not panel.busy
    driver.settle()
    program.runs.new_bandit_run()
    program.window.show_panel(KL_OVER_BETA)
    driver.settle()
    assert panel.controller.results is before and panel.choices.choice.over == FEW


def real_sweep(folder: Path) -> Queue:
    """Create a sweep for TRL with two seeds at two values of β, one of them outside the sweep of :data:`FEW`. Three
    of its runs have left a trace.
    """
    queue = begin(folder, planned(language_settings(), {BETA: [0.2, 5.0]}, (7, 8), 3))
    for run in queue.runs[:3]:
        shutil.copytree(DATA / "grpo", folder / TRACES / trace_of(run.file))
    return queue


def test_real_runs_lie_beside_the_sweep_in_picture_and_table(
    panel: KlOverBetaPanel, driver: Driver, tmp_path: Path
) -> None:
    queue = real_sweep(tmp_path / "beta sweep")
    source = open_source(DATA / "grpo")
    last = numbers(source, len(source))
    panel.add_runs(tmp_path / "beta sweep")
    driver.qtbot.waitUntil(lambda: panel.real is not None)
    driver.settle()
    place = panel.selection.over.at([0.2])[0]
    for chart, measure in ((panel.views.kl, "kl_estimate"), (panel.views.reward, "reward_mean")):
        marks = next(points for points in chart.picture.points if points.name == "real")
        np.testing.assert_array_equal(marks.x, [place, place])
        np.testing.assert_array_equal(marks.y, [last[measure]] * 2)
        assert any(tag.text == "real runs" for tag in chart.picture.tags)
        assert any(text.startswith("real runs  ") for text, _ in chart.picture.read(place))
        columns, rows = chart.picture.table()
        assert columns[0].title == "Runs" and {len(row) for row in rows} == {len(columns)}
        assert [(row[0], row[1], row[2]) for row in rows[-3:]] == [
            (f"real, seed {run.settings.seed}", run.settings.objective.beta, last[measure]) for run in queue.runs[:3]
        ]
        assert rows[0][0] == "16 seeds"
    told = panel.run.says.toolTip()
    assert "3 runs trained by TRL" in told and "1 of them" in told
    panel.choices.real.click()
    driver.settle()
    assert panel.real is None and all(points.name != "real" for points in panel.views.kl.picture.points)
    assert panel.views.kl.picture.table()[0][0].title != "Runs"


def test_a_folder_without_such_runs_is_said(panel: KlOverBetaPanel, driver: Driver, tmp_path: Path) -> None:
    panel.add_runs(tmp_path)
    driver.qtbot.waitUntil(lambda: any("does not contain a queue of runs" in text for text in driver.messages))
    assert panel.real is None


@pytest.mark.long
def test_real_runs_are_read_by_a_process(tmp_path: Path) -> None:
    real_sweep(tmp_path)
    here, there = (
        list(Readers(own_process=own).results("swept", tmp_path, poll=lambda: None)) for own in (False, True)
    )
    assert here == there and len(here) == 3
