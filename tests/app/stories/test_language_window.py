"""The window around a language model's run: what it offers, says and arranges. The records are made by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QFileDialog
from pytestqt.qtbot import QtBot

from app.workspace.cursor import Stage
from grpo_core.config import Settings, language_settings
from grpo_core.lm.rewards import origin
from grpo_core.record import Step
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import panel, press, row_of
from tests.core.lm_steps import lm_steps

pytestmark = pytest.mark.one_window

UPDATES = 6


def as_recorded(step: Step) -> Step:
    """Return the step with greedy held-out accuracy every third update, and never with sampled accuracy."""
    measured = {"accuracy_greedy": step.step / 10} if step.step % 3 == 1 else {}
    return dataclasses.replace(step, measurements={"grad_norm": 0.4, **measured})


def written(path: Path, settings: Settings) -> Path:
    with RunWriter.create(path, settings, origin=origin(settings), title="Arithmetic") as writer:
        for step in lm_steps(UPDATES, settings=settings, dead=(1,)):
            writer.append(as_recorded(step))
    return path


@pytest.fixture
def language(driver: Driver, tmp_path: Path) -> Driver:
    driver.open(written(tmp_path / "arithmetic.grpo", language_settings()))
    assert driver.program.preferences.current.layout == "Language model", "opening it has chosen its layout"
    return driver


def visible(driver: Driver) -> set[str]:
    return {name for name, dock in driver.program.window.docks.items() if not dock.isHidden()}


def test_what_a_sweep_says_of_a_language_model_is_shown_in_full(language: Driver) -> None:
    row = panel(language, "kl_over_beta").run
    for width in (900, 700, 420):
        row.resize(width, row.height())
        QApplication.processEvents()
        says = row.says
        assert says.text().startswith("It trains at β 0, 0.04") and row.now.isVisible()
        assert says.heightForWidth(says.width()) <= says.height(), (width, says.text())


# -- controls ----------------------------------------------------------------------------------------------------------


def test_the_controls_show_the_rows_of_the_kind_of_run_alone(language: Driver) -> None:
    controls = panel(language, "controls")
    assert controls.kind.currentText() == "Language model"
    shown = {path for row in controls.rows if not row.isHidden() for path in row.paths}
    assert {"task.problem", "learner.temperature", "model.checkpoint"} <= shown
    assert not shown & {"task.landscape", "task.actions", "task.bonus", "task.file"}
    device, difficulty = (row_of(language, path).box for path in ("model.device", "task.difficulty"))
    assert [device.itemData(place) for place in range(device.count())] == ["cpu", "cuda"], "none that was never tried"
    assert difficulty.itemText(2) == "Sweet spot", "words stand for choices"
    language.program.run_manager.show(language.program.workspace.runs[0])
    language.settle()
    shown = {path for row in controls.rows if not row.isHidden() for path in row.paths}
    assert "task.landscape" in shown
    assert not any(path.startswith("model.") for path in shown)


@pytest.mark.own_window
def test_the_size_and_the_devices_of_the_model_are_said(language: Driver) -> None:
    controls = panel(language, "controls")
    assert controls.model_note.text() == "105,472 parameters · CPU"
    device = row_of(language, "model.device")
    assert device.note.isHidden(), "nothing is known before the model's process has started"
    controls.devices = lambda: ("cpu (2 cores)", "cuda (NVIDIA H200)")
    controls.redraw()
    assert device.note.text() == "Here: cpu (2 cores), cuda (NVIDIA H200)."


def test_a_checkpoint_is_chosen_in_a_dialog_and_needs_a_new_run(
    language: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("/models/mine.safetensors", ""))
    row_of(language, "model.checkpoint").browse.click()
    assert language.program.workspace.editing.pending == {"model.checkpoint": "/models/mine.safetensors"}
    language.settle()
    assert row_of(language, "model.checkpoint").field.text() == "/models/mine.safetensors"


# -- the first start, layouts ------------------------------------------------------------------------------------------


def test_the_layout_for_language_models_has_the_answers_in_the_middle_and_the_tokens_beside_them(
    language: Driver,
) -> None:
    assert visible(language) == {
        "controls",
        "metrics",
        "pipeline",
        "token_inspector",
        "training_history",
        "evolution",
        "score_your_own",
        "kl_over_beta",
        "step_detail",
    }
    docks = language.program.window.docks
    assert docks["evolution"].geometry().right() < docks["token_inspector"].geometry().left()


def test_layouts_suit_the_run_that_is_shown(language: Driver) -> None:
    language.program.window.docks["token_inspector"].hide()
    language.program.actions["reset_layout"].trigger()
    assert "token_inspector" in visible(language)
    assert language.program.preferences.current.layout == "Language model"
    for name in ("Present", "Compare"):
        language.program.layouts.choose(name)
        assert "token_inspector" in visible(language) and "policy_bars" not in visible(language)
    language.program.run_manager.show(language.program.workspace.runs[0])
    language.program.layouts.choose("Present")
    assert "policy_bars" in visible(language) and "evolution" not in visible(language)


def test_keys_act_in_the_layout_for_language_models(language: Driver) -> None:
    language.program.window.activateWindow()
    language.qtbot.waitUntil(language.program.window.isActiveWindow)
    inspector = panel(language, "token_inspector")
    inspector.grid.setFocus()
    press(language, Qt.Key.Key_Comma)
    language.settle()
    assert language.program.workspace.cursor.step == UPDATES - 1


def test_the_bars_of_a_language_model_lead_to_its_completions(language: Driver) -> None:
    language.program.window.docks["token_inspector"].hide()
    bars = panel(language, "policy_bars")
    assert "no table of actions" in bars.empty.text() == bars.summary(language.program.workspace.view)
    bars.completions.click()
    language.settle()
    assert language.program.window.panels["token_inspector"].seen


# -- cards and history -------------------------------------------------------------------------------------------------


def test_the_cards_show_right_answers_and_the_last_measurement_beside_them(language: Driver) -> None:
    cards = {card.name: card for card in panel(language, "metrics").cards}
    assert set(cards) == {"updates", "accuracy", "kl", "entropy", "loss", "dead_groups"}
    assert cards["accuracy"].note == "held out 40%, greedy"
    assert "averaged over the sampled prefixes" in cards["kl"].toolTip()
    language.move_to(3)
    assert cards["accuracy"].note == "held out 10%, greedy"
    language.program.workspace.show_stage(Stage.SCORE)
    language.settle()
    assert "%" in cards["accuracy"].accessibleName(), "what is right is known with the scores"
    assert cards["kl"].accessibleName().endswith("from the previous update"), "it comes with the last stage"


def test_a_reward_that_can_be_gamed_stands_beside_what_is_right(driver: Driver, tmp_path: Path) -> None:
    gameable = language_settings().replace({"task.problem": "gameable"})
    driver.open(written(tmp_path / "gameable.grpo", gameable))
    driver.settle()
    assert {"accuracy", "reward_mean"} <= {card.name for card in panel(driver, "metrics").cards}
    history = panel(driver, "training_history")
    assert history.choice.boxes["accuracy"].isChecked() and history.choice.boxes["reward_mean"].isChecked()


def test_the_history_offers_what_the_run_has_and_joins_what_is_sparse(language: Driver) -> None:
    history = panel(language, "training_history")
    offered = history.choice.offered
    assert {"accuracy", "accuracy_greedy", "kl", "length"} <= offered
    assert "accuracy_sampled" not in offered, "it was never measured"
    assert not history.choice.boxes["reward_mean"].isChecked(), "where only right answers pay, it is the same line"
    curve = next(curve for curve in history.charts[0].curves if curve.key == "accuracy_greedy")
    assert np.array_equal(curve.xs, [1, 4]) and np.allclose(curve.ys, [0.1, 0.4])
    language.program.run_manager.show(language.program.workspace.runs[0])
    language.settle()
    assert not any(name.startswith("accuracy") and not box.isHidden() for name, box in history.choice.boxes.items())


def test_a_choice_of_series_outlives_a_look_at_another_run_of_the_same_kind(language: Driver, tmp_path: Path) -> None:
    history = panel(language, "training_history")
    history.choice.boxes["length"].setChecked(True)
    language.open(written(tmp_path / "second.grpo", language_settings()))
    language.settle()
    assert history.choice.boxes["length"].isChecked()


def test_every_panel_says_something_before_the_first_update(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver.program.run_manager, "load_model", lambda run: None)
    driver.program.runs.new_run_of(language_settings())
    driver.settle()
    view = driver.program.workspace.view
    assert view.head == 0 and view.run.origin.dist_logp is None
    for name in ("metrics", "pipeline", "training_history", "policy_bars", "controls"):
        assert panel(driver, name).summary(view), name
    names = [button.text() for button in panel(driver, "pipeline").stages.values()]
    assert names[0] in ("Sample 8 × 8", "Sample")


# -- tempo -------------------------------------------------------------------------------------------------------------


def test_each_kind_of_run_keeps_its_own_tempo(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    driver = make(qtbot, tmp_path / "home", speed=5.0)
    player, transport = driver.program.player, driver.program.transport
    driver.open(written(tmp_path / "arithmetic.grpo", language_settings()))
    assert (player.speed, player.length) == (2.0, 150)
    assert (transport.speed.currentText(), transport.length.currentText()) == ("2 / s", "150 updates")
    player.set_speed(None)
    driver.program.run_manager.show(driver.program.workspace.runs[0])
    assert (player.speed, player.length) == (5.0, 200)
    assert transport.speed.currentText() == "5 / s"
    preferences = driver.program.preferences.current
    assert (preferences.speed, preferences.language_speed, preferences.language_run_length) == (5.0, None, 150)
    take_down(driver)


@pytest.mark.usefixtures("without_torch")
def test_space_runs_a_new_language_model_and_opens_no_list(driver: Driver) -> None:
    program, window = driver.program, driver.program.window
    window.activateWindow()
    driver.qtbot.waitUntil(window.isActiveWindow)
    program.runs.new_language_run()
    driver.settle()
    focus = QApplication.focusWidget()
    assert not isinstance(focus, (QComboBox, QAbstractButton)), focus
    QTest.keyClick(focus or window, Qt.Key.Key_Space)
    driver.qtbot.waitUntil(lambda: driver.head >= 1, timeout=30_000)
    program.player.pause()
    driver.rest()
