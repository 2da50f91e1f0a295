"""Comparing one update with another algorithm, both sides by keyboard, on a bandit and on a language model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox

from app.panels.step_columns import LOOKS
from app.panels.what_if.header import SHOWS
from grpo_core import recompute
from grpo_core.config import PRESETS
from grpo_core.learners import learner
from grpo_core.questions import Replay, Replayed
from grpo_core.runs.run_file import RunWriter
from grpo_core.what_if import in_force, what_if
from tests.app.conftest import Driver
from tests.app.painted import heights_of
from tests.app.stories.hands import activate, panel, press, type_into
from tests.core.lm_steps import lm_run, lm_step

pytestmark = pytest.mark.one_window


def choose(driver: Driver, box: QComboBox, text: str) -> None:
    """Move to an entry with the arrow keys and select it."""
    box.setFocus()
    press(driver, Qt.Key.Key_Home)
    for _ in range(box.findText(text)):
        press(driver, Qt.Key.Key_Down)
    assert box.currentText() == text
    driver.settle()


def cells(driver: Driver) -> dict[str, tuple[str, str]]:
    """Return the table: title -> the contents of the two columns."""
    model = panel(driver, "what_if").table.table
    return {model.text(n, 0): (model.text(n, 1), model.text(n, 2)) for n in range(model.rowCount())}


@pytest.fixture
def bandit(driver: Driver) -> Driver:
    driver.run(5)
    activate(driver)
    press(driver, Qt.Key.Key_W)
    driver.settle()
    return driver


@pytest.fixture
def language(driver: Driver, tmp_path: Path) -> Driver:
    path = tmp_path / "arithmetic.grpo"
    lm_run(path, 4, dead=(1,))
    driver.program.run_manager.open(path)
    driver.program.window.show_layout("Language model")
    driver.settle()
    driver.program.actions["what_if"].trigger()
    driver.settle()
    return driver


# -- on a bandit -------------------------------------------------------------------------------------------------------


def test_w_shows_the_panel_with_the_keyboard_on_the_preset_and_as_it_ran_nothing_differs(bandit: Driver) -> None:
    here = panel(bandit, "what_if")
    assert here.seen and here.header.preset.hasFocus()
    assert [here.header.preset.itemData(n) for n in range(here.header.preset.count())] == ["As it ran", *PRESETS]
    choose(bandit, here.header.preset, "As it ran")
    assert all(ran == other for ran, other in cells(bandit).values())
    assert "Unchanged: Nothing differs" in here.notes.text()


def test_other_presets_are_chosen_with_the_arrows_and_end_in_another_policy(bandit: Driver) -> None:
    here, workspace = panel(bandit, "what_if"), bandit.program.workspace
    step = workspace.view.step.step
    assert step is not None and workspace.run is not None
    choose(bandit, here.header.preset, "Dr. GRPO")
    shown = cells(bandit)
    assert shown["Standard deviation σ"] == ("sample", "none")
    assert shown["KL weight β"] == ("0.04", "0")
    run = learner(PRESETS["Dr. GRPO"].applied_to(step.settings), resume=workspace.run.step(4))
    assert np.array_equal(here.picture.views[1].step.logp, next(run).logp)
    plots = here.batch.policies.twins
    assert step.dist_logp is not None
    assert np.array_equal(heights_of(plots[0].plot)["now"], np.exp(step.dist_logp[-1])[0])
    assert np.array_equal(heights_of(plots[1].plot)["now"], np.exp(here.picture.views[1].step.dist_logp[-1])[0])
    assert "Every token weighs the same: all completions have one length" in here.notes.text()
    assert here.header.ask.isHidden()
    assert "under Dr. GRPO differs in its settings: Standard deviation σ: sample → none" in here.accessibleDescription()


def test_settings_on_top_are_typed_and_what_is_wrong_is_said_beside_them(bandit: Driver) -> None:
    here = panel(bandit, "what_if")
    choose(bandit, here.header.preset, "As it ran")
    here.header.settings.setFocus()
    press(bandit, Qt.Key.Key_Space)
    assert here.editor.isVisible()
    row = next(row for row in here.editor.rows if row.paths == ("objective.clip_high",))
    type_into(row.field, "-1")
    assert "stays 0.2" in row.error.text() and not row.error.isHidden()
    type_into(row.field, "0.01")
    bandit.settle()
    assert row.error.isHidden()
    assert cells(bandit)["Clip range, high ε⁺"] == ("0.2", "0.01")
    assert here.header.preset.currentText() == "As it ran *"
    assert here.picture.what_if.other.terms(3).clipped.sum() > here.picture.what_if.ran.terms(3).clipped.sum()
    assert bandit.program.workspace.editing.settings.objective.clip_high == 0.2, "the run itself is left alone"
    baseline = next(row for row in here.editor.rows if row.paths == ("objective.baseline",))
    choose(bandit, baseline.box, "Given")
    assert here.picture.what_if.other.step.settings.learner.critic, "a baseline that is given needs who gives it"


def test_the_pass_and_the_selection_are_those_of_every_panel(bandit: Driver) -> None:
    here, workspace = panel(bandit, "what_if"), bandit.program.workspace
    choose(bandit, here.header.passes, "pass 1 of 4")
    assert workspace.cursor.passed == 0
    assert "First pass: every ratio is 1" in here.notes.text()
    choose(bandit, here.header.shows, SHOWS["samples"])
    here.batch.samples.setFocus()
    press(bandit, Qt.Key.Key_Down)
    press(bandit, Qt.Key.Key_Down)
    bandit.settle()
    row = workspace.selection.row
    assert row is not None and workspace.selection.action == workspace.view.step.step.tokens[row, 0]  # type: ignore[union-attr]
    detail = panel(bandit, "step_detail").table
    assert detail.table.row_at(detail.currentIndex().row()) == row
    press(bandit, Qt.Key.Key_E)
    assert workspace.quantity is not None and workspace.quantity.row == row


def test_the_samples_have_the_words_of_the_step_detail_in_any_language(
    bandit: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, word in (("clipped", "«clip»"), ("token_loss", "«loss»"), ("gradient", "«push»")):
        monkeypatch.setitem(LOOKS, name, LOOKS[name]._replace(short=word))
    here = panel(bandit, "what_if")
    choose(bandit, here.header.shows, SHOWS["samples"])
    bandit.settle()
    titles = {column.key: column.title for column in here.batch.samples.table.columns}
    assert {titles[name] for name in ("clipped", "token_loss", "gradient")} == {"«clip»", "«loss»", "«push»"}


def test_passes_that_only_the_what_if_has_can_be_looked_at(bandit: Driver) -> None:
    here = panel(bandit, "what_if")
    here.question.change(bandit.program.workspace.view.step.settings, ("learner.mu",), 6)
    here.redraw()
    choose(bandit, here.header.passes, "pass 6 of 6")
    w = here.picture.what_if
    assert here.picture.passed == 5 and w.other.nearest_pass(5) == 5 and w.ran.nearest_pass(5) == 3
    assert bandit.program.workspace.view.step.passed == 3
    choose(bandit, here.header.preset, "DAPO")
    assert here.header.passes.currentText() == "pass 4 of 4"


def test_it_follows_the_cursor_and_has_nothing_before_the_first_update(driver: Driver) -> None:
    here = panel(driver, "what_if")
    assert here.empty.isVisible() and here.empty.text().startswith("No update yet:")
    assert here.accessibleDescription() == "No update yet."
    driver.run(3)
    assert here.picture.step.step == 3
    driver.move_to(1)
    assert here.picture.step.step == 1 and here.picture.what_if.other.step.scored_after
    driver.move_to(0)
    assert here.empty.text().startswith("Update 0 has no batch")


def test_what_would_break_down_is_said_in_place_of_a_picture(bandit: Driver) -> None:
    here = panel(bandit, "what_if")
    here.question.change(bandit.program.workspace.view.step.settings, ("optimizer.learning_rate",), 1e3)
    here.question.change(bandit.program.workspace.view.step.settings, ("objective.beta",), 1e3)
    here.redraw()
    assert here.batch.problem.isVisible() and "would not be a finite number" in here.batch.problem.text()
    assert cells(bandit) == {}
    choose(bandit, here.header.preset, "GSPO")
    assert not here.batch.problem.isVisible() and cells(bandit)


# -- on a language model -----------------------------------------------------------------------------------------------


def test_the_tokens_of_a_group_are_tinted_twice_on_one_scale_and_walked_by_completion(language: Driver) -> None:
    here, workspace = panel(language, "what_if"), language.program.workspace
    workspace.select(row=17, token=0)
    for preset in ("DAPO", "Dr. GRPO", "GSPO"):
        choose(language, here.header.preset, preset)
        step, rows = workspace.view.step.step, here.batch.grid.rows
        assert step is not None and rows.index.tolist() == [row for row in range(16, 24) for _ in (0, 1)]
        wanted = recompute.under(step, in_force(step, PRESETS[preset].applied_to(step.settings)))
        parts = [recompute.token_gradient(one, 0) for one in (step, wanted)]
        pushes = [surrogate if kl is None else surrogate + kl for surrogate, kl in parts]
        shares = np.stack(pushes, axis=1)[16:24].reshape(16, -1)
        pushed = np.abs(shares) > 1e-9
        np.testing.assert_allclose(rows.share[pushed] / shares[pushed], rows.share[pushed][0] / shares[pushed][0], 1e-6)
    here.batch.grid.setFocus()
    press(language, Qt.Key.Key_Down)
    language.settle()
    press(language, Qt.Key.Key_Right)
    language.settle()
    assert (workspace.selection.row, workspace.selection.token) == (18, 1), "each completion has two rows"
    press(language, Qt.Key.Key_PageDown)
    language.settle()
    assert workspace.selection.row == 24


def test_what_cannot_be_replayed_is_said_and_put_in_brackets(language: Driver) -> None:
    here = panel(language, "what_if")
    choose(language, here.header.preset, "DAPO")
    assert cells(language)["Resample dead groups"] == ("off", "(on)")
    assert "groups again, because their rewards are equal" in here.notes.text()
    assert "Not covered in DAPO" in here.notes.text()
    assert "One pass: every ratio is 1, so no clip can differ." in here.notes.text()
    assert cells(language)["KL after"][1] == "—"
    assert "change" not in [here.header.tint.itemData(n) for n in range(here.header.tint.count())]


@pytest.mark.usefixtures("unanswered")
def test_the_model_is_asked_and_its_answer_completes_the_other_side(language: Driver) -> None:
    here, workspace = panel(language, "what_if"), language.program.workspace
    choose(language, here.header.preset, "Dr. GRPO")
    step = workspace.view.step.step
    assert step is not None
    here.header.ask.setFocus()
    press(language, Qt.Key.Key_Space)
    assert (here.header.ask.text(), here.header.ask.isEnabled()) == ("Asking…", False)
    question = Replay(step=4, settings=in_force(step, PRESETS["Dr. GRPO"].applied_to(step.settings)))
    workspace.refused.emit(Replay(step=1, settings=question.settings), "Something else.")
    assert here.header.ask.text() == "Asking…"
    workspace.refused.emit(question, "The question was cancelled.")
    language.settle()
    assert here.notes.text().startswith("The question was cancelled.") and here.header.ask.isEnabled()
    here.header.ask.click()
    logp = np.stack([step.old_logp, step.old_logp + np.float32(0.01)])
    workspace.answered.emit(question, Replayed(arrays={"logp": logp}, measurements={"grad_norm": 0.125}))
    language.settle()
    assert here.header.ask.isHidden() and here.picture.what_if.other.step.scored_after
    assert cells(language)["Gradient norm"] == ("0.400", "0.125")
    assert cells(language)["Change of log π, A > 0"][1] == "0.010"
    choose(language, here.header.tint, "Change of log π")
    language.move_to(3)
    assert here.header.ask.isVisible() and not here.picture.what_if.other.step.scored_after
    language.move_to(4)
    assert here.picture.what_if.asked, "an answer that is at hand is not asked for again"


def test_an_answer_kept_in_the_file_needs_no_model(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "arithmetic.grpo"
    lm_run(path, 4)
    step = lm_step(4)
    question = Replay(step=4, settings=in_force(step, PRESETS["GSPO"].applied_to(step.settings)))
    with RunWriter.open(path) as writer:
        writer.keep_answer(question, Replayed(arrays={"logp": step.logp}, measurements={}))
    driver.program.run_manager.open(path)
    here = panel(driver, "what_if")
    choose(driver, here.header.preset, "GSPO")
    here.header.ask.click()
    driver.settle()
    assert here.picture.what_if.asked and np.array_equal(here.picture.views[1].step.logp, step.logp)


def test_settings_that_the_record_lacks_something_for_are_told_and_the_model_may_know(
    driver: Driver, tmp_path: Path
) -> None:
    path = tmp_path / "bare.grpo"
    start = lm_run(tmp_path / "other.grpo", 1)
    with RunWriter.create(path, start.settings, origin=start, title="Bare") as writer:
        bare = start.settings.replace({"objective.beta": 0.0, "model.watch_reference": False})
        writer.append(dataclasses.replace(lm_step(1, settings=bare), ref_logp=None, ref_dist_logp=None))
    driver.program.run_manager.open(path)
    here = panel(driver, "what_if")
    choose(driver, here.header.preset, "GRPO (DeepSeekMath)")
    assert "without a reference policy there is no KL" in here.batch.problem.text()
    assert here.header.ask.isVisible()
    assert what_if(lm_step(1), "GRPO (DeepSeekMath)").differences == ()


# -- where it stands ---------------------------------------------------------------------------------------------------


def test_it_lies_among_the_tabs_of_compare_and_comes_elsewhere_when_asked_for(driver: Driver) -> None:
    docks = driver.program.window.docks
    for name in ("Bandit", "Language model", "Present"):
        driver.program.layouts.choose(name)
        assert docks["what_if"].isHidden(), name
    driver.program.layouts.choose("Compare")
    assert not docks["what_if"].isHidden()
    driver.settle()
    assert driver.program.window.panels["what_if"].seen
